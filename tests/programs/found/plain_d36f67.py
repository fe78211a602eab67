"""an unsigned array compared with a negative run-time number."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(b, p):
    s1 = b <= p
    return (s1,)
""",
    (
        ArgSpec("b", "uint32", shape=(3,), seed=1),
        ArgSpec("p", "int", kind="-2"),
    ),
    reorders=False,
    rounds=False,
)
