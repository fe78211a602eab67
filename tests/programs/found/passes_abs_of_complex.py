"""result 0: 7.7781745930520225 against 7.778174593052023, after `complex_to_pairs`."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(v, w, a, r):
    t = 1.0
    for c in range(2):
        t = np.max(np.abs(v - w))
        for row in range(len(a)):
            for col in range(a.shape[1]):
                r[row] += a[row, col]
    return t
""",
    (
        ArgSpec("v", "complex128", shape=(100,), seed=604094557),
        ArgSpec("w", "complex128", shape=(100,), seed=37306165),
        ArgSpec("a", "complex128", shape=(1, 100), seed=242642652),
        ArgSpec("r", "complex128", shape=(1,), seed=331721150),
    ),
    reorders=True,
    rounds=True,
)
WAYS = Ways(
    profile="default",
    schedule=True,
)
