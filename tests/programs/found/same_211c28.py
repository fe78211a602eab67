"""temporary: error CdZeroDivisionError CD0764 against none: error[CD0764]: division by ."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, b, idx, p):
    v1 = np.minimum(p, b[:,])
    a[:,] = 0 // idx[1] - 0.5
    v3 = 1
    v1 //= 0
""",
    (
        ArgSpec("a", "float64", shape=(0, 0), seed=1),
        ArgSpec("b", "int64", shape=(1, 0), seed=1),
        ArgSpec("idx", "float64", shape=(2,), kind="index:1", seed=1),
        ArgSpec("p", "int", kind="-1"),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    checked=True,
)
