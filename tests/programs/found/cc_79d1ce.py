"""CdInternalError: error[CD0901]: f0: storage comes first: v3#8 has no storage yet, in ."""

from ..model import ArgSpec, Program
from ..ways import Ways

PROGRAM = Program(
    """def f(b):
    for t2 in range(2):
        v3 = np.all(b, axis=1)
    b *= v3
""",
    (ArgSpec("b", "int64", shape=(2, 2), seed=1),),
    reorders=False,
    rounds=False,
)
WAYS = Ways(
    schedule=True,
    open=True,
)
