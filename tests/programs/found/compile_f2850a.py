"""CdInternalError: error[CD0904]: plusequals failed while reading `f0`: AttributeError:."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b):
    b += b - b
""",
    (ArgSpec("b", "float64", shape=(1,), seed=1),),
    reorders=False,
    rounds=False,
)
