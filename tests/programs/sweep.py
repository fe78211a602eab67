"""Every expression of NumPy's functions x types x shapes, held against NumPy itself.

    python -m tests.programs.sweep                                   a drawn part of all
    python -m tests.programs.sweep --programs 0 --shapes small       all of them, on small arrays
    python -m tests.programs.sweep --programs 0 --shapes large --jobs 2

Values, types, what is shared with arguments, arguments after the call and whether NumPy raises have
to be the same; an expression may be refused. Each is interpreted, and compiled at default settings.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from .check import Finding, check_all
from .isolate import Child, Crashed, first_ready
from .model import ArgSpec, Program
from .numpy_expressions import EXPRESSIONS
from .ways import Ways

TYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip
SHAPES = {"small": ((3, 4), (5, 3), (1, 2)), "large": ((130, 64), (64, 1500))}
BATCH = 40
_ROUNDED = (
    "exp sqrt cbrt log sin cos tan arc hyp pow ** degrees radians deg2rad rad2deg angle mean var "
    "std average cov corr norm linalg quantile percentile median trapezoid polyval gradient "
    "convolve correlate interp linspace space @ dot inner outer einsum kron cross sum prod reduce "
    "accumulate trace histogram density unwrap divide reciprocal / mgrid"
).split()
"""What may be rounded in another way than NumPy does, or adds in another order."""


def program_of(expression: str, dtype: str, shape: tuple[int, int], seed: int) -> Program:
    """Return the function of one expression, and arguments of a type and shape."""
    rows, columns = shape
    rng = random.Random(f"{expression} {dtype} {shape} {seed}")
    kind = "exact" if rng.random() < 0.7 else "wild"

    def spec(name: str, dtype: str, shape: tuple[int, ...], kind: str) -> ArgSpec:
        return ArgSpec(name, dtype, shape, kind, "C", rng.randrange(2**31))

    side = columns if columns < 100 else 40
    specs = (
        spec("a", dtype, shape, kind), spec("b", dtype, shape, kind),
        spec("v", dtype, (columns,), kind), spec("w", dtype, (columns,), kind),
        spec("q", dtype, (side, side), "exact"),
        spec("t", dtype, (2, *shape), "exact"), spec("k", "int64", (columns,), f"index:{columns}"),
        spec("m", "bool", shape, "exact"), spec("d", "float64", (columns,), kind),
        spec("h", "float16", (columns,), "exact"), spec("l", "int64", (columns,), "wild"),
        spec("u", "uint64", (columns,), "wild"), spec("r", "float64", (columns,), "rising"),
        ArgSpec("i", "int", (), str(rng.randrange(-3, 6))),
        ArgSpec("x", "float", (), rng.choice(("0.5", "-1.5", "2.675", "0.0", "0.15"))),
    )  # fmt: skip
    text = f"def f({', '.join(one.name for one in specs)}):\n    return {expression}\n"
    rounds = np.dtype(dtype).kind == "c" or any(name in expression for name in _ROUNDED)
    return Program(text, specs, "S", True, rounds)


def programs(seed: int, types: Sequence[str], shapes: Sequence[tuple[int, int]]) -> list[Program]:
    """Return all programs, in an order that a seed draws."""
    made = [
        program_of(expression, dtype, shape, seed)
        for expression in EXPRESSIONS
        for dtype in types
        for shape in shapes
    ]
    random.Random(seed).shuffle(made)
    return made


def batch(chosen: Sequence[Program], compiled: bool) -> list[tuple[str, Finding | None]]:
    """Return of each program why it was refused, and the finding."""
    large = max(spec.shape[0] for spec in chosen[0].args if spec.shape) > 9
    ways = Ways(c=compiled, profile="default", optimize=2, schedule=True, numpy=large)
    return [(case.refused, case.finding) for case in check_all(chosen, ways)]


def sweep(chosen: Sequence[Program], jobs: int, compiled: bool) -> tuple[Counter[str], list[str]]:
    """Run programs in processes of their own; return why some are refused, and the findings."""
    refused: Counter[str] = Counter()
    found: list[str] = []
    waiting = [chosen[n : n + BATCH] for n in range(0, len(chosen), BATCH)]
    running: dict[Child, Sequence[Program]] = {}
    done, started = 0, time.monotonic()
    while waiting or running:
        while waiting and len(running) < jobs:
            now = waiting.pop(0)
            running[Child(batch, now, compiled)] = now
        child = first_ready(list(running))
        now = running.pop(child)
        try:
            results = child.result(600.0)
        except Crashed as why:
            results = [(f"crash: {why}", None)] * len(now)
            found.append(f"a batch {why}: {[one.text for one in now]}")
        for program, (reason, finding) in zip(now, results, strict=True):
            if reason:
                refused[" ".join(reason.split("`")[0].split()[:6])] += 1
            if finding is not None:
                found.append(_told(program, finding))
                print(f"\n{found[-1]}", flush=True)
        done += len(now)
        rate = done / (time.monotonic() - started)
        line = f"{done}/{len(chosen)}, {rate:.1f}/s, {sum(refused.values())} refused"
        print(f"\r{line}, {len(found)} findings", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return refused, found


def _told(program: Program, finding: Finding) -> str:
    expression = program.text.split("return ")[1].strip()
    first = program.args[0]
    return f"{expression:40} {first.dtype:10} {first.shape} [{finding.check}] {finding.why[:300]}"


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; return 1 where anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--programs", type=int, default=400, help="how many; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--types", nargs="*", default=list(TYPES), choices=TYPES)
    parser.add_argument("--shapes", choices=sorted(SHAPES), default="small")
    parser.add_argument("--only", default="", help="expressions that contain this text")
    parser.add_argument("--interpreted", action="store_true", help="compile nothing")
    given = parser.parse_args(arguments)
    chosen = programs(given.seed, given.types, SHAPES[given.shapes])
    chosen = [one for one in chosen if given.only in one.text][: given.programs or None]
    refused, found = sweep(chosen, given.jobs, not given.interpreted)
    print(f"{len(chosen)} programs, {sum(refused.values())} refused, {len(found)} findings")
    for reason, count in refused.most_common(25):
        print(f"  refused {count:5}  {reason}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
