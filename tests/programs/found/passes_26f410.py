"""CdInternalError: error[CD0901]: f0: operands fit: isnan is computed in float32, not f."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a):
    v3 = a
    v5 = np.copysign(v3, a)
""",
    (ArgSpec("a", "uint8", shape=(1,), seed=1),),
    reorders=True,
    rounds=True,
)
WAYS = Ways(
    passes=True,
    plain=False,
    profile="default",
    optimize=2,
    checked=True,
)
