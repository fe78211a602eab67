"""Tuned constants of matrix products and contractions on a processor.

The sizes of tiles and panels follow from registers and caches, see `lowering/cpu/gemm/blocking.py`;
these are their limits. They were introduced for products of 64 to 1,024 rows and columns in float32
and float64, and for convolutions, which the cells `gemm`, `contraction`, `conv_nhwc` and
`conv_nchw` of the benchmark measure.
"""

# -- what is tiled

MIN_GEMM_TERMS = 8192
"""Terms of a nest that is tiled: rows times columns times terms of each. Smaller ones stay as they
are: packing would be most of the time."""

MIN_COMPLEX_GEMM_TERMS = 1 << 17
"""Terms of a product of complex matrices whose parts are multiplied apart, in tiles. Smaller ones
stay: copying parts would be most of the time."""

MIN_COMPLEX_GEMM_ROWS = 8
"""Rows, and columns, of such a product. With fewer, parts are not read often enough to be
copied."""

MIN_SYMMETRIC_ROWS = 48
"""Rows of a product with the transpose of which one triangle is computed and mirrored: some tiles,
of which those on the diagonal are computed whole. Covariances, `syrk`."""

MIN_SYMMETRIC_TERMS = 64
"""Terms of each element of such a product: with fewer, mirroring is much of the time."""

# -- tiles of registers

MIN_TILE_SUMS = 10
"""Sums of a tile. With fewer at a time each waits for the one before it: multiply-adds have a
latency of 4 cycles, of which two begin in each, and there is a delay now and then."""

FULL_TILE_PENALTY = 3
"""Multiply-adds that a tile of 12 sums takes longer if it leaves no register beside its factors:
compilers then reload columns for each row. With a larger one tiles leave registers free."""

MAX_PREDICATED_TILE_VECTORS = 2
"""Vectors of columns in a tile where not all elements exist. Triangles and bands. With a larger one
more elements outside of them are computed in vain."""

# -- panels

MAX_PACKED_COLUMNS = 1024
"""Columns that are packed at a time. With a larger one rows are packed less often, and panels of
columns leave the last-level cache."""

MAX_PACKED_ROWS = 576
"""Rows that are packed at a time: an upper limit of the block that `ROW_BLOCK_L2_FRACTION`
allows. With a larger one columns are read less often."""

MAX_COLUMN_GROUP_BYTES = 1 << 18
"""Bytes of columns that are packed just before their use, with half the L2 cache as another limit:
of some adjacent tiles, which are long pieces of few pages."""

MAX_PANEL_ROW_BYTES = 2048
"""Bytes of a row that are in a panel at a time, or half as many again where that is all of it. With
a larger one partial sums are loaded and stored less often, and tiles leave the L1 cache."""

MIN_PANEL_DEPTH = 16
"""Iterations of the outermost reduction loop that a panel has at a time. With fewer, adjacent
elements would be copied separately."""

MAX_PARTIAL_SUM_BYTES = 5 << 19
"""Bytes of partial sums that wait for further terms, private to each thread. With a larger one
columns are packed less often, and threads need more than the `MAX_PRIVATE_BYTES` that they may."""

MAX_IN_PLACE_TERMS = 2048
"""Terms that are added at a time where rows are read in place, without a panel. Convolutions and
products of few columns. With a larger one rows in place leave the L1 cache."""

MAX_IN_PLACE_ROW_TILES = 4
"""Tiles in a column of tiles for which columns are read in place. Products of few rows. With more,
packing pays as each column is read so often."""

MAX_IN_PLACE_STEPS = 2048
"""Terms that are added at a time where columns are read in place. With more, each in a page of its
own, the pages of a tile no longer stay in the second table of translations."""

MAX_IN_PLACE_TILES = 16
"""Tiles in a row of tiles for which rows are read in place. Convolutions and small products. With
more, packing pays as each row is read so often."""

PACKED_STEPS = 8
"""Steps of a lane, or of a row of tiles, that are copied at a time where they are adjacent in
memory: about a cache line."""

CACHE_SET_PERIOD_BYTES = 4096
"""Bytes whose multiples apart addresses may fall in the same set of the L1 cache: 64 sets of lines
of 64 bytes. Rows so far apart are packed instead of read in place."""

# -- blocks of rows and columns

ROW_BLOCK_L2_FRACTION = 0.75
"""Fraction of the L2 cache for a block of rows. The rest is for columns and sums that pass through.
Square products."""

MAX_WHOLE_ROWS_L2 = 2
"""All rows of a thread are one block, for which columns are packed once, if they take at most so
many times the L2 cache. Square products whose rows nearly fit."""

MAX_WHOLE_ROWS_BYTES = 1 << 20
"""Bytes that such a block takes at most. See `MAX_WHOLE_ROWS_L2`."""

MIN_REPACKED_ROWS = 64
"""Rows in a block, for each operation that an element of the columns takes, with which some columns
at a time are packed again for each block: that is little of the time, and they are in near caches,
not in those of another thread."""

PACK_ONCE_L3_FACTOR = 16
"""A single thread packs all columns once where the last-level cache holds them so many times. With
a smaller one packed columns leave that cache."""

CACHED_COLUMNS_L2_FACTOR = 3
"""All columns stay in the L2 cache where it holds them so many times, and rows pass through.
Convolutions in planes."""

UNEVEN_BLOCKS_PER_THREAD = 4
"""Blocks of rows for each thread where some have more elements than others. Triangles and bands.
With a larger one the load is better balanced, and columns are read more often."""

CACHED_BLOCKS_PER_THREAD = 16
"""Blocks of rows for each thread where more blocks are no more work, as columns stay in the L2
cache. Convolutions in planes."""
