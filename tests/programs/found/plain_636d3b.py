"""result 0: dtype uint32 against int64."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(z):
    v5 = np.kron(z, 1)
    return (v5,)
""",
    (ArgSpec("z", "uint32", shape=(1, 1)),),
    reorders=False,
    rounds=False,
)
