"""A parallel loop inside of another one hid what that wrote in its scratch array."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(x, y, u, v, out):
    t1 = np.empty((64, 30))
    t1[...] = 1
    for g in range(40):
        t2 = (x[g].T * x[g].T + -0.5) + 0
        for b4 in range(30):
            t2[:, b4] = y[:, b4]
        for b6 in range(30):
            t1[:, b6] = t2[:, b6] + -1
        s7 = np.median(t1, axis=1)
        t1[0, 0] += s7.ravel()[-1]
        t8 = np.empty((64, 30))
        t8[...] = 1
        out[g] = t1
        out[g] += t8 - t8 * 2 + 1
    return out
""",
    (
        ArgSpec("x", "float64", shape=(40, 30, 64), seed=876512872),
        ArgSpec("y", "float64", shape=(64, 30), seed=952108820),
        ArgSpec("u", "float64", shape=(64,), seed=448021553),
        ArgSpec("v", "float64", shape=(30,), seed=686670897),
        ArgSpec("out", "float64", shape=(40, 64, 30), seed=1272750608),
    ),
    reorders=False,
    rounds=True,
)
WAYS = Ways(
    plain=False,
    profile="default",
    optimize=3,
    schedule=True,
    threads=2,
    parallel_from=400000,
    poison=True,
    numpy=True,
)
