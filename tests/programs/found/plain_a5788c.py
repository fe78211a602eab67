"""results share memory with arguments: ((False, False, False, False),) against ((False,."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, b, c, d):
    v1 = np.ravel(d)
    return (v1,)
""",
    (
        ArgSpec("a", "int64", shape=(1, 1), seed=1),
        ArgSpec("b", "int64", shape=(1, 1), seed=1),
        ArgSpec("c", "int64", shape=(1,), seed=1),
        ArgSpec("d", "int64", shape=(2, 2), seed=1),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    open=True,
)
