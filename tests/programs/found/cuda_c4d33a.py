"""another order of threads: result 0: [[-0.2571409584935597, -1e-310, nan, inf], [1.0, ."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, b, q):
    if np.floor(np.negative(b[0, 3])) <= 2:
        b[:-7:3, 3] -= np.logical_and(a[3, 0:0], b[4, 3:3])
    for t1 in range(1):
        if (a[2, 0] - b[-2, -1]) <= 0.25:
            continue
        b[i, j] /= (sum[k](a[clamp(k - 2), j] * b[k, j]) - min(a[j, 2], b[3, clamp(i + 2)]))
    return a,
""",
    (
        ArgSpec("a", "float64", shape=(4, 4), kind="wild", seed=327652771),
        ArgSpec("b", "float64", shape=(7, 4), kind="wild", seed=223714445),
        ArgSpec("q", "float", kind="2.0"),
    ),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    c=False,
    cuda=True,
    plain=False,
    profile="default",
    stack_bytes=0,
    schedule=True,
    threads=2,
    parallel_from=1,
    thresholds=921,
    numbers=True,
)
