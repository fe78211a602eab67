"""result 0: dtype float32 against int64."""

from ..model import Program

PROGRAM = Program(
    """def f():
    v7 = np.zeros(1, dtype=np.float32)
    s12 = 1
    s12 = max(s12, v7)
    return (s12,)
""",
    (),
    reorders=False,
    rounds=True,
)
