"""result 0: dtype float64 against float32."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, d, z):
    s10 = a[1, 1]
    for t9 in range(1):
        s10 = max(s10, z[1, t9])
    return (np.cos(s10),)
""",
    (
        ArgSpec("a", "float64", shape=(2, 2), seed=1),
        ArgSpec("d", "int16", shape=(3, 2), seed=1),
        ArgSpec("z", "int16", shape=(1, 1), view=("d", "[:-1]")),
    ),
    reorders=False,
    rounds=True,
)
