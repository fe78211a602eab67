"""result 0: 5.79644113343742e+18 against 5.796441683193233e+18."""

from ..model import ArgSpec, Program

PROGRAM = Program(
    """def f(c):
    v1 = np.zeros(17, dtype=np.float32)
    for t2 in range(17):
        v1[t2] = c[0]
    s10 = np.mean(v1)
    return (s10,)
""",
    (ArgSpec("c", "int64", shape=(1,), kind="wild", seed=2),),
    reorders=True,
    rounds=False,
)
