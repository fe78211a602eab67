"""CdInternalError: error[CD0904]: plusequals failed while reading `f0`: AttributeError:."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b):
    v2 = b ** 0
""",
    (ArgSpec("b", "float64", shape=(1, 1), seed=1),),
    reorders=False,
    rounds=True,
)
