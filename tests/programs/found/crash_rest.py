"""CD0802: what is left of a sum in lanes was shared among threads, each with its own total."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a):
    v1 = 0.0
    for t in range(3):
        v1 = np.linalg.norm(a[t:])
    return (v1,)
""",
    (ArgSpec("a", "float64", shape=(50,), seed=1),),
    reorders=True,
    rounds=True,
)
WAYS = Ways(
    passes=True, plain=False, profile="default", optimize=1, schedule=True, threads=2,
    parallel_from=0,
)  # fmt: skip
