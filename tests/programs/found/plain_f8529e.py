"""result 0: shape (1,) against ()."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(idx):
    v8 = np.squeeze(idx[4:5])
    return (v8,)
""",
    (ArgSpec("idx", "float64", shape=(5,), kind="index:4", seed=2),),
    reorders=False,
    rounds=True,
)
WAYS = Ways(
    open=True,
)
