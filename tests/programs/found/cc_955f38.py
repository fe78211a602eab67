"""KeyError: 10."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(b):
    v1 = np.zeros(9)
    s4 = v1
    s6 = 1
    for t5 in range(9):
        s6 += v1[t5]
    b %= np.sum(v1, axis=0, dtype=np.float64)
    return (s4, s6)
""",
    (ArgSpec("b", "float64", shape=(1, 1), seed=1),),
    reorders=True,
    rounds=False,
)
WAYS = Ways(
    profile="default",
    schedule=True,
)
