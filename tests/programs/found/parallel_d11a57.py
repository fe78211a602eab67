"""argument 0: [[-8.636397791473218, -3.8092162025470895, -2.815204664673436], [-84.0425."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a):
    a[i, j] += a[i, k]
""",
    (ArgSpec("a", "float64", shape=(3, 3), kind="wild", seed=1),),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    passes=True,
    plain=False,
    profile="default",
    optimize=1,
    stack_bytes=0,
    schedule=True,
    threads=2,
    parallel_from=0,
)
