"""checked mode tells the division that is evaluated first, named beforehand or not."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(a, b, c, idx, q):
    v1 = idx[::-1]
    v2 = (q // idx[5:] < idx[3:5]) // v1[1:4].argmax(axis=-1)
    for t3 in range(1, 5):
        pass
    v4[i, j] = (abs(f64(v1[i])) if i >= j else max(j, -1)) + idx[i] + v2[j]
    v5[i, j] = (v4[i, j] + v4[i, j]) * (v4[i, j] + v4[i, j]) - v4[i, j]
    v6 = v2[:]
    return (v1, v2, v4, v5, v6)
""",
    (
        ArgSpec("a", "float64", shape=(1,), seed=1),
        ArgSpec("b", "float64", shape=(1, 1), seed=1),
        ArgSpec("c", "float64", shape=(1, 1), seed=1),
        ArgSpec("idx", "float64", shape=(6,), kind="index:9", seed=1721944193),
        ArgSpec("q", "float", kind="0.0"),
    ),
    reorders=True,
    rounds=True,
)
WAYS = Ways(
    checked=True,
)
