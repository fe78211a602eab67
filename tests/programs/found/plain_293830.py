"""result 0: -8.085053805883399e+19 against -8.0850546854927e+19."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, z):
    v1 = np.zeros(9, dtype=np.float32)
    for t2 in range(9):
        v1[t2] = z[2, 0]
    s11 = np.sum(v1)
    return (s11,)
""",
    (
        ArgSpec("a", "int64", shape=(4, 3), kind="wild", seed=895844877),
        ArgSpec("z", "int32", shape=(4, 3), view=("a", "[1:]")),
    ),
    reorders=True,
    rounds=False,
)
