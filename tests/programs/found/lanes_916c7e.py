"""result 0: [-0.06702517880151201, 0.40111019906351447, 0.738168582330627, 0.9037012355."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(b, c, d):
    v1[i, j] = d[1] + c[i, 1] + b[j]
    v2[i] = v1[i, i]
    v2[i] *= c[i, j]
    v6 = v2
    return (np.sin(v6),)
""",
    (
        ArgSpec("b", "float64", shape=(8,), seed=1),
        ArgSpec("c", "int64", shape=(8, 2), kind="wild", seed=1),
        ArgSpec("d", "float64", shape=(8,), kind="wild", seed=2),
    ),
    reorders=False,
    rounds=True,
)
WAYS = Ways(
    passes=True,
    plain=False,
    profile="default",
    optimize=1,
    schedule=True,
    threads=7,
    parallel_from=0,
)
