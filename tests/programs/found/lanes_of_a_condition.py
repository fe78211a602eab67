"""KeyError: a lane in a condition of a sum."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(b):
    v1[i] = sum[j](where(j < 1, b[i, j], b[1, j]))
    return v1
""",
    (ArgSpec("b", "float64", shape=(2, 2), seed=1),),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    profile="default",
    schedule=True,
    thresholds=102031775,
)
