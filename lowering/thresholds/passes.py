"""Tuned constants of the passes that do not depend on a target."""

MAX_INLINED_NODES = 64
"""Nodes of an expression after inlining. Elementwise chains. With a larger one fewer temporaries
are stored; gcc takes longer for a statement, and has too few registers for its values."""

MAX_FUSION_DISTANCE = 64
"""Statements that a nest looks back for one that computes an array for it alone. It bounds compile
time, which would grow with the square of the length of a function."""

MAX_UNROLLED_ITERATIONS = 5
"""Iterations of a loop that is unrolled completely. Short loops that decide tests, points of three
coordinates, small windows. With a larger one more subscripts are static, and the text grows."""

MAX_UNROLLED_STATEMENTS = 96
"""Statements that replace one unrolled loop, loops in it unrolled as well. It bounds the text of
C, and with it the time that its compiler takes."""

STACK_LIMIT_MULTIPLE = 16
"""All small arrays of a function together may take so many times the limit of one of them on the
stack. With a larger one fewer are in the arena, and stacks of threads fill up."""

LONG_LIVE_RANGE = 16
"""Statements that live ranges of arrays span on the average from which all placed arrays are looked
at for a new one, instead of those of each statement. Sums of 160 arrays: 7 ms instead of 104. With
a smaller one chains of many statements take quadratic time."""
