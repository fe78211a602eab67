"""CdInternalError: error[CD0904]: plusequals failed while reading `f0`: KeyError: l.10 ."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, b):
    v1[i, j] = (sum[k](a[k, i]) if j > 1 else min[l](b[l])) + a[j, j]
""",
    (
        ArgSpec("a", "float64", shape=(1, 1), seed=1),
        ArgSpec("b", "float64", shape=(1,), seed=1),
    ),
    reorders=True,
    rounds=True,
)
WAYS = Ways(
    passes=True,
    plain=False,
    stack_bytes=0,
)
