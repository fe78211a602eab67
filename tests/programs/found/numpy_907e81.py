"""CdInternalError CD0991: error[CD0991]: an impossible program was interpreted: b#1 of ."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(b):
    b -= np.interp(b, [0, 1, 1], [1, 1, 1])
""",
    (ArgSpec("b", "float64", shape=(0, 1), seed=1),),
    reorders=True,
    rounds=False,
)
WAYS = Ways(
    checked=True,
)
