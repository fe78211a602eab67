"""truths were multiplied and added by `convolve`."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, b):
    a[None,] = np.convolve(b[1:2], a[1,])
""",
    (
        ArgSpec("a", "bool", shape=(2, 1), seed=1),
        ArgSpec("b", "bool", shape=(2,), seed=1),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    passes=True,
    plain=False,
    profile="default",
    stack_bytes=64,
    threads=1,
    parallel_from=0,
    pipeline="short",
)
