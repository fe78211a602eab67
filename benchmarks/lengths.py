"""Compile time over the length of a function: `python3 -m benchmarks.lengths`.

Functions of 10 to 3,000 statements of eight kinds are each compiled in a process of their own with
an empty cache. What is measured is processor time (import, front end, passes, emitting C, the C
compiler and the first call), so that other work on the machine disturbs it little. The exponent is
that of a line through the longest three, less what the shortest takes: 1 means that twice the
statements take twice the time.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SIZES = (10, 30, 100, 300, 1000, 3000)
STAGES = ("import", "front end", "build", "lower", "passes", "emit", "C compiler", "rest")
OUT = Path(__file__).parent / "out"
ROOT = Path(__file__).resolve().parent.parent


def _program(body: Sequence[str], result: str = "return y", before: Sequence[str] = ()) -> str:
    lines = ["@cd", "def f(x):", *(f"    {line}" for line in (*body, result))]
    return "\n".join([*before, *lines, "value = f(np.linspace(0.1, 0.9, 64))"])


def arrays(n: int) -> str:
    """Return a chain of whole arrays."""
    return _program(["y = x", *(("y = np.sin(y) + x", "y = y * x - 0.5")[k % 2] for k in range(n))])


def scalars(n: int) -> str:
    """Return a chain of numbers, each with a name of its own."""
    lines = (f"y{k + 1} = y{k} * 0.5 + x[{k % 64}]" for k in range(n))
    return _program(["y0 = x[0]", *lines], f"return y{n}")


def letters(n: int) -> str:
    """Return statements in index notation."""
    lines = (("z[i] = y[i] * x[i] + 0.25", "y[i] = z[i] - x[i]")[k % 2] for k in range(n))
    return _program(["y = x.copy()", *lines])


def elements(n: int) -> str:
    """Return updates of single elements."""
    lines = (f"y[{k * 7 % 64}] = y[{k * 5 % 64}] * 0.5 + x[{k % 64}]" for k in range(n))
    return _program(["y = x.copy()", *lines])


def helpers(n: int) -> str:
    """Return calls of functions that are inlined."""
    before = ["def one(v, w):", "    t = v * 0.5", "    return t + w"]
    return _program(
        ["y = x[0]", *(f"y = one(y, x[{k % 64}])" for k in range(n))], "return y", before
    )


def branches(n: int) -> str:
    """Return tests on numbers of the run, each with a statement on both sides."""
    lines = (line for k in range(n) for line in
             (f"if y > x[{k % 64}]:", "    y = y - 0.25", "else:", "    y = y + 0.5"))  # fmt: skip
    return _program(["y = x[0]", *lines])


def loops(n: int) -> str:
    """Return loops, one after another."""
    lines = (line for k in range(n) for line in
             (f"for k in range({k % 5}, 64):", f"    y[k] = y[k] * 0.5 + x[{k % 64}]"))  # fmt: skip
    return _program(["y = x.copy()", *lines])


def tables(n: int) -> str:
    """Return a loop over so many constants, and an array of them."""
    before = [f"TABLE = [(k * 167 + 13) % 256 for k in range({n})]"]
    lines = ["t = np.array(TABLE)", "y = x.sum()", "for w in TABLE:", "    y += x[w % 64] * w"]
    return _program([*lines, "y += t[np.int64(x[0])]"], "return y", before)


KINDS: Mapping[str, Callable[[int], str]] = {
    "arrays": arrays, "scalars": scalars, "letters": letters, "elements": elements,
    "helpers": helpers, "branches": branches, "loops": loops, "tables": tables,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Point:
    """What a function of one kind and length took; `why` where there is no time."""

    kind: str
    statements: int
    seconds: float
    stages: dict[str, float] = field(default_factory=dict)
    passes: dict[str, float] = field(default_factory=dict)
    why: str = ""


# ---------------------------------------------------------------- in the process that compiles


class _Clock:
    """Processor seconds of this process by stage, each without the stages inside of it."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}
        self._open: list[list[float]] = []

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        """Count what is done inside as this stage's."""
        begun = time.process_time()
        self._open.append([0.0])
        try:
            yield
        finally:
            took, (inner,) = time.process_time() - begun, self._open.pop()
            self.taken[stage] = self.taken.get(stage, 0.0) + took - inner
            if self._open:
                self._open[-1][0] += took

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, timed."""

        def run(*args: Any, **keywords: Any) -> Any:
            with self.of(stage):
                return function(*args, **keywords)

        return run


def _measured(kind: str, n: int) -> Point:
    """Compile and run one function in this process."""
    clock = _Clock()
    with clock.of("import"):
        import numpy as np

        from plusequals import cd
        from plusequals.backends.codegen import c_printer
        from plusequals.dsl.specialize import specialization as made
        from plusequals.lowering import lower, pipeline

    timed: Any = clock.timed
    specialise: Any = made
    specialise.elaborate = timed("front end", specialise.elaborate)
    specialise.build = timed("build", specialise.build)
    lower.lower = timed("lower", lower.lower)
    c_printer.print_program = timed("emit", c_printer.print_program)
    pipeline.PASSES = tuple(
        one._replace(run=timed(f"pass {one.name}", one.run)) for one in pipeline.PASSES
    )
    names: dict[str, object] = {"np": np, "cd": cd}
    path = Path(tempfile.mkdtemp()) / "measured.py"
    path.write_text(KINDS[kind](n), encoding="utf-8")
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)  # noqa: S102
    path.unlink()
    path.parent.rmdir()
    passes = {key[5:]: taken for key, taken in clock.taken.items() if key.startswith("pass ")}
    own, children = time.process_time(), os.times()
    stages = {key: taken for key, taken in clock.taken.items() if not key.startswith("pass ")}
    stages |= {
        "passes": sum(passes.values()),
        "C compiler": children.children_user + children.children_system,
    }
    stages["rest"] = own + stages["C compiler"] - sum(stages.values())
    return Point(kind, n, own + stages["C compiler"], stages, passes)


# ---------------------------------------------------------------- in the process that asks


def measure(kind: str, n: int, limit: float) -> Point:
    """Return what one function takes in a process of its own that has so many seconds."""
    command = [sys.executable, "-m", "benchmarks.lengths", "--one", kind, str(n)]
    with tempfile.TemporaryDirectory() as cache:
        here = {"PYTHONPATH": str(ROOT), "PLUSEQUALS_CACHE_DIR": cache}
        try:
            done = subprocess.run(
                command, env=os.environ | here, cwd=ROOT, capture_output=True, text=True,
                check=False, timeout=limit,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Point(kind, n, math.inf, why=f"not done after {limit:g} s")
    if done.returncode:
        told = done.stderr.strip().splitlines()
        return Point(kind, n, math.inf, why=told[-1] if told else f"ended by {done.returncode}")
    return Point(**json.loads(done.stdout.splitlines()[-1]))


def exponent(points: Sequence[Point]) -> float:
    """Return the power of the length with which the time of a kind grows, beyond the shortest.

    NaN where fewer than two points are left.
    """
    done = sorted((p.statements, p.seconds) for p in points if not p.why)
    pairs = [(math.log(n), math.log(s - done[0][1])) for n, s in done[1:] if s > done[0][1]][-3:]
    if len(pairs) < 2:
        return math.nan
    mean_x, mean_y = (sum(side) / len(pairs) for side in zip(*pairs, strict=True))
    above = sum((x - mean_x) * (y - mean_y) for x, y in pairs)
    return float(above / sum((x - mean_x) ** 2 for x, _ in pairs))


def row(point: Point) -> str:
    """Return a line of the table: the seconds of each stage, and the slowest passes."""
    if point.why:
        return f"{point.kind:9s} {point.statements:5d}  {point.why}"
    slow = sorted(point.passes.items(), key=lambda one: -one[1])[:4]
    told = ", ".join(f"{name} {taken:.2f}" for name, taken in slow if taken >= 0.05)
    stages = " ".join(f"{point.stages.get(stage, 0.0):10.2f}" for stage in STAGES)
    return f"{point.kind:9s} {point.statements:5d} {point.seconds:8.2f} {stages}  {told}"


def draw(points: Sequence[Point], path: Path) -> None:
    """Write the curves as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for kind in dict.fromkeys(point.kind for point in points):
        done = [p for p in points if p.kind == kind and not p.why]
        label = f"{kind}, n^{exponent(done):.2f}"
        axes.plot([p.statements for p in done], [p.seconds for p in done], "o-", label=label)
    axes.set(xscale="log", yscale="log", xlabel="statements",
             ylabel="processor seconds from import to the first result")  # fmt: skip
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main(words: Sequence[str]) -> int:
    """Measure what is asked for. Returns 1 where a function was not done in its time."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.lengths", description=__doc__)
    parser.add_argument(
        "--kinds", default=",".join(KINDS), metavar="A,B", help="of " + ", ".join(KINDS)
    )
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), metavar="N,M")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for one function (240)")
    parser.add_argument(
        "--out", type=Path, default=OUT, help="the folder for lengths.json and lengths.png"
    )
    parser.add_argument("--one", nargs=2, metavar=("KIND", "N"), help="measure one in this process")
    asked = parser.parse_args(words)
    if asked.one is not None:
        print(json.dumps(asdict(_measured(asked.one[0], int(asked.one[1])))))
        return 0
    print(
        "kind          n  seconds "
        + " ".join(f"{stage:>10s}" for stage in STAGES)
        + "  slowest passes"
    )
    points: list[Point] = []
    for kind in asked.kinds.split(","):
        for n in map(int, asked.sizes.split(",")):
            points.append(measure(kind, n, asked.limit))
            print(row(points[-1]), flush=True)
            if points[-1].why:
                break
        print(
            f"{kind:9s} grows as n^{exponent([p for p in points if p.kind == kind]):.2f}",
            flush=True,
        )
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "lengths.json").write_text(json.dumps(list(map(asdict, points)), indent=1))
    draw(points, asked.out / "lengths.png")
    return int(any(point.why for point in points))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
