"""Tuned constants of the cost models, and limits of effort of analyses.

The limits of effort bound compile time: with a larger one an analysis proves more, and takes
longer where programs are large; beyond it the answer is the safe one.
"""

# -- costs of expressions, in additions of floats

MAX_RECOMPUTED_COST = 2
"""Additions: up to this cost an expression is always inlined and recomputed, whatever the number of
its uses: a read and an operation cost less than an array in between. Elementwise chains."""

STORE_COST = 4
"""Additions: what storing an element of a temporary costs. With a larger one more is recomputed,
with a smaller one more temporaries are stored. Elementwise chains."""

READ_COST = 1
"""Additions: what reading an element costs. See `STORE_COST`."""

ASSUMED_SIZE = 64
"""Iterations, or elements of an axis: what a size counts for that only a call knows. With a larger
one loops of dynamic sizes count as worth more work before them, and more sharing."""

# -- work of loops, in additions of one SIMD lane

STORE_WORK = 1
"""Lane additions: what a store of an element is, beside its value. Decides what is shared among
threads, see the setting `parallel_from`."""

SCALAR_WORK = 8
"""Lane additions: what an operation is that is not vectorized: the lanes of float32 in vectors of
256 bits. With a larger one loops that stay scalar are shared among threads sooner."""

PRINT_COST = 1000
"""Additions: what a print is. Only its order of magnitude matters: loops that print are long."""

LIBRARY_CALL_COST = 16
"""Additions: what `expression_cost.cost` says of a call of the C library, which compilers do not
vectorize: loops of expressions that cost so much count as scalar."""

REGISTER_TILE_BYTES_PER_UNIT = 16
"""Bytes of a register tile that are computed for one unit of work: each read serves many
operations. Matrix products. With a larger one products count as less work, and are shared among
threads from a larger size on."""

MAX_VERSIONED_SUBEXPRESSIONS = 1000
"""Subexpressions of a loop that may be written three times. With a larger one more loops of
dynamic sizes get fast versions, and the text of C grows threefold."""

# -- contractions

LONG_REDUCTION_TERMS = 512
"""Terms: from so many on it costs little to store results that are not contiguous, and columns
whose neighbours share terms may become rows. Convolutions. With a smaller one fewer terms are
copied into panels, and stores of short reductions are strided."""

MANY_COPIES_PER_TERM = 8
"""Copies: where a panel would have each term so often, half of `LONG_REDUCTION_TERMS` are enough.
Convolutions with large windows. See there."""

MIN_INTERCHANGED_COLUMNS = 32
"""Columns that there have to be after such an interchange: with fewer, vectors would be partly
empty. Convolutions."""

MIN_TILED_POINTS = 4096
"""Products, and elements of a result: from so many on a product of matrices is worth tiling over
both of its outer axes, and is not fused with what follows unless enough is left inside. With a
larger one more small products are fused."""

LITTLE_ACCUMULATION = 256
"""Innermost iterations of a nest for each of another that accumulates some of its results: from so
many on they are not fused, which would save little and carry the accumulator through the first."""

LITTLE_SHARED = 16
"""Elements that two nests read along different axes, for each that they share along one: from so
many on they are not fused, of which one of them would lose contiguous accesses."""

MIN_TILE_SIDE = 32
"""Rows, and columns: with so many of both inside of a loop, that loop need not be tiled and may be
fused. With a smaller one tiles are narrow, with a larger one fewer loops are fused around
products, as in attention and batches."""

# -- reductions and stencils

MIN_SEPARATE_MIN_MAX_ITERATIONS = 32
"""Iterations: from so many on minima and maxima beside other reductions get a loop of their own,
which can be vectorized; the loop is walked twice for that."""

MAX_STENCIL_ROW_BYTES = 64 << 10
"""Bytes of a private row of a stencil, of which each thread has a copy. Stencils over time steps.
With a larger one rows of more columns are tiled, and leave the L1 and L2 caches to fewer others."""

MAX_STENCIL_PERIOD = 4
"""Time steps after which exchanged arrays have to be back in their places. Stencils with two to
four buffers. With a larger one more texts are tiled, each of so many steps."""

# -- limits of effort

MAX_PARTIAL_WRITES = 8
"""Writes that together may cover an array: each is tested against each part of it."""

MAX_WRITING_BRANCHES = 4
"""Branches that writes of an array may be in for both sides to be looked at: each doubles the
number of cases."""

MAX_WRITE_BOUNDS = 8
"""Bounds of writes at which a range is split to find the elements that they cover together."""

MAX_WRITE_STRIDE = 16
"""Residue classes into which an axis is split where strided writes together may cover it: each is
tested by itself."""

MAX_WRITTEN_PARTS = 1000
"""Parts of an array that are tested, whether a write covers them: beyond it the array counts as
not covered."""

MAX_FIRST_ITERATIONS = 4
"""Iterations: the largest dependence distance whose first iterations are looked at one by one.
Recurrences of few terms."""

MAX_CONFLICTING_ITERATIONS = 4
"""Iterations of a loop that are split off because others access the same element: each is one
more copy of the body."""

MAX_INEQUALITIES = 160
"""Inequalities of one system: elimination may square their number at each step. Beyond it the
answer is "unclear", and the loop stays in order."""

MAX_INTEGER_TRIES = 400
"""Values that are tried where a system allows rational points that need not be integers. Beyond it
the answer is "unclear"."""

MAX_DOMAIN_POINTS = 1 << 20
"""Points of an iteration domain that are listed. With more, evenly spaced samples stand for all of
them, and counts of operations are estimates."""

MAX_TIMED_ACCESSES = 1 << 20
"""Accesses that are put in order one by one for counts of memory traffic. With more, it is not
known which elements are read before they are written."""

MAX_END_CANDIDATES = 16
"""Expressions in which loop variables are replaced by their bounds, that are compared for the
least or greatest value of one: a bound that is a minimum of several gives several. With fewer
bounds are weaker."""
