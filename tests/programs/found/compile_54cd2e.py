"""CdInternalError: error[CD0904]: plusequals failed while reading `f0`: AttributeError:."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(a, b):
    v1 = np.logical_and(b, a)
""",
    (
        ArgSpec("a", "float64", shape=(1, 1), seed=1),
        ArgSpec("b", "float64", shape=(1, 1, 1), seed=1),
    ),
    reorders=False,
    rounds=False,
)
