"""CdInternalError: error[CD0904]: plusequals failed while reading `f0`: AttributeError:."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b):
    v1 = b
    v1 |= np.logical_or(1, v1)
""",
    (ArgSpec("b", "float64", shape=(1, 1), seed=1),),
    reorders=False,
    rounds=False,
)
