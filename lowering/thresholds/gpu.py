"""Tuned constants of the schedule of a device.

What "occupies a device" is chosen for one of some hundred multiprocessors; the H100 on which
docs/performance.md was measured has 132.
"""

# -- points and threads

BLOCK_THREADS = 256
"""Threads of a block whose threads execute points, or that reduces together. With a larger one
fewer blocks fit at once where threads need many registers, with a smaller one blocks start more
often."""

POINTS_PER_THREAD = 4
"""Points of a thread where there are many, of elements of 32 bits or more: 16 bytes of an array are
in flight at once. Elementwise work. With a larger one registers hold more loads."""

MAX_POINTS_PER_THREAD = 16
"""Points of a thread: with smaller elements as many more as move 16 bytes of an array. Elementwise
work on bytes and 16-bit numbers."""

MIN_SEVERAL_POINTS = 1 << 20
"""Points that occupy a device with several for each thread. With fewer each thread has one."""

MIN_UNCOLLAPSED_ITERATIONS = 64
"""Iterations of a loop that is distributed over threads by itself: one with fewer is collapsed with
those around it, or most threads of a block would be idle. Also the number of contiguous points from
which on long sums are split column by column, and not point by point."""

MAX_THREAD_PRIVATE_BYTES = 256
"""Bytes of an array that is private to a thread: 64 registers, if its subscripts are static. Larger
ones are expanded, or a block works on a point."""

MIN_OCCUPYING_POINTS = 2048
"""Points that occupy a device with one thread each. With fewer the loops inside them are
distributed over the threads of a block, too."""

MIN_BLOCK_LOOP_ITERATIONS = 32
"""Iterations of a loop inside points that make a block for each point worth it: a warp."""

MAX_BLOCK_SHARED_BYTES = 47 * 1024
"""Bytes of shared memory of a block: 48 KiB are there without opting in to more, and a little is
reserved for faults."""

MAX_SEQUENTIAL_POINTS = 4096
"""Points that an iteration of a sequential loop executes in one block. With more the host runs the
loop and launches a kernel for each iteration. Also what an unknown number of points counts as."""

CYCLIC_STRIP_ITERATIONS = 32
"""Iterations of a thread that are unrolled as one strip, loads first: more run out of registers.
Sums along rows, softmax, layer norm."""

MAX_HOISTED_BYTES = 64
"""Bytes that a thread loads ahead of divisions and functions, over whose branches compilers move no
load: 16 registers. With a larger one more loads are in flight, and fewer threads fit on a
multiprocessor."""

MAX_CACHED_ROW_BYTES = 128
"""Bytes of rows that a thread keeps in registers at a time, so that memory is read once: 32
registers. Softmax and layer norm."""

MAX_REMATERIALIZED_OPERATIONS = 8
"""Operations of a scalar that every thread recomputes: less than the launch of one more kernel."""

# -- reductions

COMBINING_THREADS = 32
"""Threads that first combine the partial results of all others of their block with theirs: a warp.
Also the unit in which the threads of such blocks are counted."""

MAX_FINAL_PARTIALS = 8
"""Partial results of a block that all of its threads combine redundantly, at the end. With a larger
one there is a barrier less, and each thread reads more."""

MAX_REDUCTION_BLOCKS = 1024
"""Blocks of one reduction: eight for each multiprocessor of a large device. Sums of whole
arrays."""

MIN_REDUCTION_BLOCK_TERMS = 4096
"""Terms of a block of a reduction that several blocks share. With a smaller one more blocks take
part, and more partial results are combined."""

MIN_OCCUPYING_SEGMENTS = 256
"""Points, each of which is a block's, that occupy a device. With fewer several blocks share the
reduction of each. Few long sums. Also what an unknown number of points counts as."""

COLUMN_REDUCTION_THREADS = 1 << 18
"""Threads that occupy a device. Sums down columns: with more columns nothing is split, with fewer
several threads share each."""

MIN_COLUMN_TERMS_PER_THREAD = 32
"""Terms of a thread of such a sum. With a smaller one more partial results are combined."""

MIN_COLUMN_TERMS = 1 << 20
"""Terms in all that are worth one more kernel, which combines partial results of columns."""

MAX_LAST_BLOCK_GRID = 2048
"""Blocks that each wait until the others see what they have written, so that the last one combines
(instead of one more kernel): a large device runs most of them at once. Where more run one after the
other, each of them would wait. Sums of whole arrays and down columns."""

MAX_LAST_BLOCK_SHARED_BYTES = 16 * 1024
"""Bytes of shared memory of such a block for both of its parts: a multiprocessor has room for eight
of them."""

LONG_SERIAL_ITERATIONS = 32
"""Iterations from which on a serial loop of a last block is kept rolled: registers that one block
uses for prefetched partial results are taken from all blocks. Shorter ones may be unrolled."""

MAX_SPLIT_KERNEL_ARRAYS = 64
"""Arrays of a kernel that replaces several. It bounds the number of arguments."""

# -- scans and recurrences

MAX_SCAN_CHUNKS = 1024
"""Chunks of a scan: so many threads scan their sums. With a larger one sums are scanned in one more
step. Running totals."""

MIN_SCAN_CHUNK_ITERATIONS = 32
"""Iterations of a chunk of a scan, which one thread executes twice. With a smaller one more threads
work, on a longer scan of sums."""

MIN_SERIAL_SCAN_ROWS = 1 << 16
"""Rows, each scanned by one thread, that occupy a device. With fewer each row is scanned in
chunks."""

MIN_PREFIX_CHUNK_ITERATIONS = 256
"""Iterations of a chunk of a counting loop whose iterations read the counts. Counting sorts. With a
smaller one more threads work, and there are more copies of the counts."""

MIN_PREFIX_CHUNKS = 4
"""Chunks that pay for going through the iterations twice. Counting sorts."""

MIN_LAST_WRITER_ITERATIONS = 1024
"""Iterations of a loop that stores at positions which data pick, from which on the last writer of
each element is found by all threads. With fewer each owner of elements executes all of them."""

WAVEFRONT_SKEWS = (0, 1, 2, 3)
"""Candidate skews: the columns by which each row of a front is behind the one before it. Tables of
dynamic programming, Gauss-Seidel sweeps. The first that is legal is taken."""

MIN_WAVEFRONT_ITERATIONS = 32
"""Iterations of both loops that are worth going front by front, with a barrier or launch for
each."""

MAX_FLAG_VALUE_COST = 8
"""Additions: a value up to this cost is recomputed in each iteration, so that a loop which ends by
a flag can be searched by all threads."""

MAX_EXTRA_ITERATIONS = 1 << 26
"""Iterations that a device executes in vain when all search for the first in which a test holds,
whatever they read. Searches in arrays. With a larger one longer loops are parallel, and one that
would end at once takes longer."""

# -- owners of elements

MAX_OWNERS = 4096
"""Threads that own elements, each of which goes through all iterations. Scatters. With a larger one
each owns fewer elements, and more read the same memory."""

MAX_OWNED_CHUNKS = 1024
"""Chunks of iterations that have private copies of the elements. Histograms of integers."""

MIN_OWNED_CHUNK_ITERATIONS = 256
"""Iterations of such a chunk, those of inner loops counted: with fewer, combining the copies takes
longer than the iterations."""

ASSUMED_OWNED_ITERATIONS = 64 * MIN_OWNED_CHUNK_ITERATIONS
"""Iterations that are assumed where their number is dynamic."""

MIN_OWNED_CHUNKS = 4
"""Chunks that pay for the copies."""

MAX_OWNER_THREADS = 1 << 16
"""Threads over all chunks; with more chunks each thread owns more elements."""

MAX_CHUNK_COPIES_BYTES = 1 << 26
"""Bytes of all private copies. With a larger one arrays of more elements have many chunks, and
fewer programs fit beside others."""

# -- contractions

TILE_SIDE = 64
"""Rows and columns of the small tile of a contraction. With a larger one shared memory is read less
often for each product, and small results have too few tiles."""

TILE_DEPTH = 16
"""Terms of a stage in shared memory. With a larger one there are fewer barriers, and fewer blocks
fit on a multiprocessor."""

TILE_SIDE_THREADS = 16
"""Threads along each side of a tile: 256 threads, each with 16 sums, or 64 in tiles of 128 by
128."""

THREAD_TILE_SIDE = 4
"""Contiguous rows and columns of a thread: vectors of 16 bytes of float32 in shared memory."""

TERM_UNROLL_FACTOR = 2
"""Terms that are unrolled: with more, registers do not suffice. Tiles of 128 by 128."""

VECTOR_STORE_COLUMNS = 2
"""Columns of a vector store of sums: with more, a compiler has too few registers for them."""

MIN_CONTRACTION_PRODUCTS = 16 * 16 * 16
"""Products of a contraction that goes through shared memory. Smaller ones are left to other
kernels."""

MIN_OCCUPYING_TILES = 128
"""Tiles that occupy a device: about one for each multiprocessor. With fewer, tiles are small or
terms are split."""

MIN_LARGE_TILE_ELEMENTS = MIN_OCCUPYING_TILES * 2 * TILE_SIDE * 2 * TILE_SIDE
"""Elements of a result that occupy a device in tiles of twice both sides."""

MIN_SPLIT_TERMS = 256
"""Terms of a split of a contraction that has few tiles (split-k). Gradients of weights. With a
smaller one more blocks work, and more partial sums are written and read."""

MAX_LARGE_TILE_SPLITS = 8
"""Splits of a contraction that would else have small tiles: large tiles compute twice as fast, and
each partial sum is written and read once."""

MIN_LARGE_TILE_SPLIT_TERMS = 512
"""Terms of such a split."""

MAX_REMATERIALIZED_COST = 64
"""Additions: what recomputing an element may cost where the tiles of a contraction are filled,
instead of being stored before. Attention. Also the cost of that store."""

MAX_REMATERIALIZED_NODES = 64
"""Nodes of an expression that replaces an element there. It bounds the text of a kernel."""

WARPGROUP_TILE = (128, 256)
"""Rows and columns of a tile that four warps multiply together on devices of capability 9.0; half
the columns where there are no more. Products of 16-bit numbers."""

MIN_TENSOR_CORE_SIZE = 16
"""Rows, columns and terms of a product by tensor cores: with fewer a unit would mostly multiply
padding."""
