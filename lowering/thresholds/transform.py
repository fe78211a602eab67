"""Tuned constants of loop transformations that both schedules share."""

MAX_EXPANDED_BYTES = 1 << 30
"""Bytes of a device that temporaries may take in all when they are expanded by a copy for each
point. Nests with scratch arrays. With a larger one more nests are shared by threads, and fewer
programs fit beside others."""

MIN_DISTRIBUTED_ITERATIONS = 8
"""Iterations that a loop has to have to be worth distributing over threads of a device. With a
smaller one more loops are, and most threads of a warp are idle in them."""

MIN_FISSION_ITERATIONS = 32
"""Iterations from which on a loop is distributed into two for a device, its scalars expanded: each
is one kernel, or one phase between barriers, more."""

MAX_SUNK_COST = 8
"""Additions: a scalar up to this cost is recomputed for each point when it is sunk into an inner
loop, so that both loops become points. Rows whose points share a few operations."""

ENOUGH_BLOCK_POINTS = 1024
"""Iterations of an inner loop that occupy a block by themselves: scalars before it stay, and each
iteration of the outer loop has a block."""

LONG_INNER_LOOP_ITERATIONS = 32
"""Iterations of a loop in a point that outweigh recomputed scalars: with so many they are sunk even
where the points would be enough for a block."""
