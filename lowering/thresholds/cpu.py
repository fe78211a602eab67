"""Tuned constants of the schedule of a processor, but for those of matrix products."""

# -- parallelization

MAX_PRIVATE_BYTES = 4 << 20
"""Bytes of private temporaries of one thread of a parallel loop. Nests with scratch arrays. With a
larger one more loops are parallel, and memory grows with the number of threads."""

MIN_DEFERRED_WORK_RATIO = 16
"""Work of an iteration, without its accumulations, over that of adding the terms that it stores
instead (`deferred_accumulation`). Sums of whole arrays. With a smaller one storing and reading the
terms takes a larger share of the time that threads save."""

MAX_DEFERRED_BYTES = 1 << 18
"""Bytes of terms that the iterations between two loops over terms store. Sums of whole arrays. With
a larger one there are fewer such loops, and terms leave the caches before they are read."""

MIN_DEFERRED_ITERATIONS_PER_THREAD = 2
"""Iterations of each thread between two loops over terms, where terms are kept in several turns.
With a smaller one threads wait for each other more often than they work."""

MAX_DYNAMIC_DEFERRED_ITERATIONS = 256
"""Iterations between two loops over terms where the trip count is dynamic. With a larger one more
memory is reserved that short loops do not use."""

MIN_CHUNK_ITERATIONS = 16
"""Iterations of a chunk of an inner loop that has loops inside, when threads share it instead of
the loop around (`privatized_arrays`). Loops whose iterations need each other around loops whose do
not. With a smaller one more is shared, in shorter loops, which take longer for each iteration."""

MIN_INNERMOST_CHUNK_ITERATIONS = 512
"""Iterations of a chunk of an innermost loop: several vectors of each array. With a smaller one
there are more chunks for each thread, which balances the load, of short loops."""

MAX_CHUNKS_PER_THREAD = 4
"""Chunks for each thread where there are iterations enough. With a larger one the load is better
balanced, and outer loops are repeated more often."""

MIN_CHUNKED_WORK_FACTOR = 4
"""Work of a loop that is shared by chunks of an inner one, over what is worth sharing otherwise
(the setting `parallel_from`): short loops take longer for each iteration."""

MIN_COPIED_WORK_RATIO = 4
"""Work of a loop over that of starting and combining the private copies of the arrays that it
accumulates into. Histograms of integers. With a smaller one threads are used where the copies take
most of the time."""

# -- sums, in lanes and blocks: the number of terms alone decides their order

SUM_LANES = 32
"""Partial results of a sum that is vectorized: enough to fill the adders of any processor. Sums
along rows and of whole arrays. Results of float sums depend on it."""

SUM_BLOCK_TERMS = 32 * SUM_LANES
"""Terms of a block of a sum, which are added up before their sum is added to those of other
blocks. A larger one has fewer tests between blocks, a smaller one less rounding error. Results of
float sums depend on it."""

SUM_SUPERBLOCK_TERMS = 32 * SUM_BLOCK_TERMS
"""Terms of the blocks whose sums are added up together. As `SUM_BLOCK_TERMS`."""

MAX_WRITTEN_OUT_TERMS = 8
"""Terms of a sum that is written out, without a loop. Sums of a few neighbours. With a larger one
more sums need no loop and no partial results, and the text grows."""

MAX_WRITTEN_OUT_OPERATIONS = 96
"""Operations of a sum, or of what is left of one, that is written out. It bounds the text of
sums whose terms are long, and registers that hold values between."""

ARG_LANES = 32
"""Terms of a block that are compared at once in a search for the first best. `argmin` and `argmax`
along rows and of whole arrays."""

ARG_BLOCK_TERMS = 32 * ARG_LANES
"""Terms of a block of such a search: its best value is found in vectors, and only a block with a
better one is searched for the position. Enough that little is left to do between blocks."""

MIN_BLOCKED_ARG_TERMS = 2 * ARG_LANES
"""Terms from which on such a search goes by blocks. Of fewer the first best is found one by one:
combining the lanes would take longer."""

MIN_VECTOR_MIN_MAX_TERMS = 5
"""Terms from which on minima and maxima are found in lanes. Rows of four numbers are quicker one by
one."""

MAX_WIDE_ACCUMULATOR_ITERATIONS = 16
"""Iterations of a loop that keeps its wide accumulators of narrow integers: with so few, adding the
narrow ones to the wide ones takes longer than they save. Sums of bytes."""

EARLY_EXIT_BLOCK_ITERATIONS = 1024
"""Iterations, of all loops together, between two tests whether the result of `any` or `all` is
there. With a larger one vectors run longer without a test, with a smaller one less is done in
vain. Searches in arrays."""

STRIP_ROWS = 4
"""Rows that a strip of columns takes at a time, where its sums are in memory. Sums down columns of
arrays that the L2 cache does not hold. With a larger one sums are loaded and stored less often, and
more streams are read at once."""

MAX_SINGLE_STRIP_VECTORS = 12
"""Vectors of columns that are one strip, whose sums are in registers: rows are read once. Sums down
a few columns. With a larger one sums are spilled where a processor has 16 registers."""

DYNAMIC_STRIP_WIDTHS = 8
"""Pieces of each thread's strip that are assumed where the number of columns is dynamic. Sums down
columns. With a larger one strips are wider, and arrays of few columns have none."""

MAX_JAMMED_ROWS = 4
"""Rows whose sums are computed together (unroll-and-jam). Sums along rows of large arrays, matrix
times vector. With a larger one more sums hide the latency of additions, and more streams are read
at once."""

MAX_JAMMED_STATEMENTS = 60
"""Statements of a row that is jammed with others. It bounds the text, which is so many times as
long."""

MAX_JAMMED_ITERATIONS = 4
"""Iterations of a short loop that is unrolled around a long one, and jammed. Sums of a few
neighbours, in the loop that feeds them. With a larger one more values are shared between
iterations, and registers do not suffice."""

# -- vectorization of loops with branches, calls and jumps

DIVERGENT_LANES = 32
"""Iterations that are the lanes of one strip where each leaves its own loop at another time: enough
to hide the latency of an operation, and few, as all wait for the last. Mandelbrot sets with an
early exit, Newton's method. Loops of fewer iterations stay."""

MAX_UNMASKED_ITERATIONS = 4
"""Iterations of a loop that keeps its branches: masks would take longer than so few tests. Loops
with branches on data."""

MAX_MASKED_COST = 128
"""Additions: what a guarded statement may cost to be computed where its test does not hold, too.
Loops with branches on data. With a larger one more loops are vectors, and rarely taken branches
cost more than they would as jumps."""

MAX_PREDICATED_TERM_COST = 64
"""Additions: what a guarded term of a reduction may cost to be computed where its test does not
hold, too. Sums and counts under a mask. As `MAX_MASKED_COST`."""

MAX_FORCED_SIMD_ITERATIONS = 64
"""Iterations of a loop that is vectorized by order of a pragma: longer ones have time for the test
of the compiler whether arrays overlap."""

MAX_STAGE_ITERATIONS = 256
"""Iterations of a block whose functions each have a loop of their own, fewer where the L1 cache
has no room for the values between. Chains of functions such as `exp` and `log`. With a larger one
blocks start less often."""

MIN_STAGE_ITERATIONS = 32
"""Iterations of a loop that is split into such stages. Shorter ones stay: the latency that stages
hide is not much of their time."""

MAX_EARLY_EXIT_STAGE_ITERATIONS = 8 * MAX_STAGE_ITERATIONS
"""Iterations of a block whose second stage are inner loops that end by what a function gave: each
takes long, so that the values between may leave the L1 cache."""

MAX_INLINED_FUNCTIONS = 16
"""Functions that a program computes with each inlined; one with more calls each in a loop of its
own. Lines of `y = np.exp(-y) - y`. Measured with gcc 12 and AVX2: an inlined `exp` of float64
takes 0.1 s to compile, a `sin` 0.25 s, a call 0.01 s; 80 such lines compile in 0.4 s instead of 8.
Loops with calls ran 1.01 to 1.04 times as long for `exp`, `sin`, `log` and `tanh` of float64, 1.0
to 1.2 for float32, 1.4 to 1.6 for `where` of an `exp` (20,000 elements, one thread)."""

# -- checks

CHECKED_BLOCK_ITERATIONS = 1024
"""Iterations whose subscripts are checked in vectors before they are executed. Gathers and
scatters. With a larger one what was checked has left the L1 cache when it is used; with a smaller
one loops start more often."""

# -- splits of loops

MIN_PEELED_ITERATIONS = 16
"""Iterations that remain in the middle of a loop whose first and last ones are peeled, so that the
middle tests nothing. Stencils with borders, windows with padding. With a smaller one short loops
become three."""

MAX_PEELED_BOUNDS = 4
"""Run-time bounds at which one loop is split: each is one more copy of its body. Windows with
padding of dynamic sizes."""

MIN_WRAPPED_ITERATIONS = 16
"""Iterations of a loop that is split where a subscript wraps around. `np.roll`, periodic borders.
As `MIN_PEELED_ITERATIONS`."""

MAX_WRAPPED_SUBSCRIPTS = 2
"""Subscripts of one loop that wrap at different iterations: each doubles the number of loops."""

MIN_DELINEARIZED_ITERATIONS = 16
"""Iterations of the inner one of two loops that replace one over quotients and remainders: some
vectors of adjacent elements. Reshaped and repeated arrays. With a smaller one inner loops are short
of a vector."""

MAX_COLUMN_EXPANDED_ITERATIONS = 2048
"""Iterations for which scalars are expanded at a time when a loop is distributed by columns: with
a few values of each, the L1 cache. Recurrences beside what can be vectorized."""

MIN_COMPLEX_READS = 16
"""Reads of an element of a complex array from which on its real and imaginary parts are copied
apart. Products of complex matrices. Loops of dynamic sizes count as so many reads."""

# -- memory

TRANSPOSED_TILE_BYTES = 128
"""Bytes of neighbours that a tile has along both loops: two cache lines, which are fetched at once.
Transposed copies. Measured on 2,000 by 2,000 numbers of 8 bytes: 16.2 to 22 ms with 128 bytes by
128 to 2,048, 19.5 to 21.8 with 64 bytes, 45 ms without tiles."""

MAX_UNTILED_ITERATIONS = 256
"""Iterations inside of the outer one of both loops of a transposed copy that need no tiles: all
their lines stay in the L1 cache."""

MIN_STRIDE_BYTES = 64
"""Bytes between neighbours from which on a loop touches another cache line in each iteration, which
tiles avoid: the line of most processors."""

MAX_TILED_SWEEPS = 32
"""Sweeps over a tile of rows, one after the other (time tiling). Stencils over time steps. With a
larger one memory is read less often, and more is left to do between tiles."""

MAX_PERIOD_SWEEPS = 12
"""Sweeps of a period of time steps that is tiled: the text has each of them, for tiles and for
gaps."""

SWEEP_BLOCK_BYTES = 16 << 10
"""Bytes of rows of a block within a tile: few enough for the L1 cache, enough for long loops.
Stencils over time steps."""

MAX_L3_BYTES_PER_THREAD = 4 << 20
"""Bytes of the last-level cache that a thread may count on, which other programs use as well.
Stencils over time steps whose rows no L2 cache holds."""

TIME_TILES_PER_THREAD = 4
"""Tiles for each thread, where they are wide enough. With a larger one the load is better balanced,
and there are more gaps between tiles."""
