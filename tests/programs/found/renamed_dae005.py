"""fuse --- +++ @@ -25,9 +25,9 @@ convolved[0] += product(f64(w[i]), stacked[-i + 1]) # ."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(v, w, y, z, a, b, x, r, q):
    s, t, p, g = (0.0, 1.0, 0, False)
    for row in range(4):
        for col in range(a.shape[1]):
            if col == q[row]:
                r[row] += a[row, col]
    if g:
        s = t
    w[:] = np.convolve(w, np.array([0.25, 0.5, 0.25]), mode='same')
    s, t = (t, s)
    return (s, t, p, g)
""",
    (
        ArgSpec("v", "float64", shape=(1,), seed=1),
        ArgSpec("w", "float32", shape=(4,), seed=1),
        ArgSpec("y", "float64", shape=(1,), seed=1),
        ArgSpec("z", "float64", shape=(1,), seed=1),
        ArgSpec("a", "float64", shape=(1, 1), seed=1),
        ArgSpec("b", "float64", shape=(1, 1), seed=1),
        ArgSpec("x", "float64", shape=(1, 1), seed=1),
        ArgSpec("r", "float64", shape=(1,), seed=1),
        ArgSpec("q", "int64", shape=(1,), kind="index:4", seed=1),
    ),
    reorders=True,
    rounds=False,
)
WAYS = Ways(
    profile="default",
    schedule=True,
)
