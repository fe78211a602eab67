"""An attack on the persistent cache: every call against plain Python and a fresh compilation.

    python -m tests.dsl.cache_attack --rounds 20 --seed 1

Programs of `cache_programs` are called with values of all kinds, in processes that share one cache
folder, and in each after modules were imported again and names rebound. What a call gives (value,
type, arguments and captured arrays afterwards) as C, found on disk where it is there, and on
`numpy`, is compared with what the function gives undecorated and, where that is not the same to the
type, with what a compilation gives that no cache is asked for. Prints each difference with all that
makes it come again, and ends with 1 where there is one.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.backends.runtime.state import RUNTIME
from tests.dsl.cache_programs import TEMPLATES, Call, Program, Template, draw, draw_calls

PROCESSES = 3
"""How many processes share a cache folder in one round."""
PARALLEL = 2
"""How many of them run at once."""
CALLS = 16
"""How often a process calls each function."""


def main(argv: Sequence[str] | None = None) -> int:
    """Attack, and return how the process is to end: 0 where nothing was found."""
    parser = argparse.ArgumentParser(prog="tests.dsl.cache_attack", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="cache folders")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=2 * len(TEMPLATES), help="in each round")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    chosen = parser.parse_args(argv)
    if chosen.child:
        _child(Path(chosen.child))
        return 0
    found = total = disk = 0
    for number in range(chosen.rounds):
        seed = chosen.seed + number
        calls, hits, differences = attack(seed, chosen.programs)
        total, disk = total + calls, disk + hits
        print(f"seed {seed}: {calls} calls, {hits} found on disk, {len(differences)} different")
        for one in differences:
            print(one, flush=True)
        found += len(differences)
    print(f"{total} calls, {disk} functions found on disk, {found} differences")
    return 1 if found else 0


def attack(seed: int, programs: int) -> tuple[int, int, list[str]]:
    """Return how many calls were made in processes over one new cache, how many kinds of calls
    were found on disk, and what differs."""
    rng = random.Random(seed)
    first = rng.randrange(len(TEMPLATES))
    drawn = [draw(rng, first + number) for number in range(programs)]
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        calls, hits, differences = 0, 0, list[str]()
        waiting = []
        for number in range(PROCESSES):
            work = [(one, draw_calls(rng, one, CALLS)) for one in drawn]
            place = Path(folder, f"process{number}")
            place.mkdir()
            (place / "work.json").write_text(json.dumps(_written(work)), encoding="utf-8")
            waiting.append(_started(place, Path(folder, "cache")))
            if len(waiting) == PARALLEL or number == PROCESSES - 1:
                for process, told in waiting:
                    said, _ = process.communicate()
                    if process.returncode:
                        differences.append(f"  the process ended with {process.returncode}: {said}")
                        continue
                    result = json.loads(told.read_text(encoding="utf-8"))
                    calls, hits = calls + result["calls"], hits + result["hits"]
                    differences += [f"  seed {seed}: {one}" for one in result["differences"]]
                waiting.clear()
    return calls, hits, differences


def _started(place: Path, cache: Path) -> tuple[subprocess.Popen[str], Path]:
    command = [sys.executable, "-m", "tests.dsl.cache_attack", "--child", str(place)]
    root = str(Path(__file__).parents[2])
    given = os.environ | {
        "PLUSEQUALS_CACHE_DIR": str(cache), "PLUSEQUALS_OPTIMIZE": "0", "PYTHONPATH": root,
    }  # fmt: skip
    process = subprocess.Popen(
        command, cwd=root, env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return process, place / "result.json"


def _written(work: Sequence[tuple[Program, Sequence[Call]]]) -> list[Any]:
    return [
        [one.name, one.template, one.constant, [list(call) for call in calls]]
        for one, calls in work
    ]


def _child(place: Path) -> None:
    """Do the work of one process, and write what came of it."""
    work = json.loads((place / "work.json").read_text(encoding="utf-8"))
    calls, differences = 0, list[str]()
    for name, (text, given, captured), constant, listed in work:
        program = Program(name, Template(text, given, tuple(captured)), constant)
        made = [Call(tuple(one[0]), one[1], one[2]) for one in listed]
        differences += differences_of(program, made, place)
        calls += len(made)
    result = {"calls": calls, "differences": differences, "hits": RUNTIME.counts().get("disk", 0)}
    (place / "result.json").write_text(json.dumps(result), encoding="utf-8")


def differences_of(program: Program, calls: Sequence[Call], folder: Path) -> Iterator[str]:
    """Yield, in words, each call of a program that does not do what it does elsewhere."""
    sys.dont_write_bytecode = True  # a module that is written twice in a second looks the same
    warnings.simplefilter("ignore")
    world: list[types.ModuleType] = []
    for number, call in enumerate(calls):
        if not world or call.is_new:
            if (made := _worlds(program, call, folder)) is None:
                return
            world = made
        else:
            for module in world:
                _bind(module, call)
        plain, fresh, kept, cached = world
        with np.errstate(all="ignore"):
            wanted = outcome(plain.f, plain, call)
            found = [outcome(cached.c, cached, call), outcome(kept.c.on("numpy"), kept, call)]
            if all(given[0] == "value" and alike(given, wanted) for given in found):
                outcome(fresh.f, fresh, call)  # what is captured changes there, too
                continue
            anew = outcome(_compiled(fresh.f), fresh, call)
        for given in found:
            right = given[0] == "value" and alike(given, wanted, False)
            if not alike(given, anew) and not (anew[0] == "error" and right):
                yield _told(program, calls[: number + 1], cached=given, fresh=anew, plain=wanted)
            elif given[0] == wanted[0] == "value" and not right and not _is_wide(wanted[1][0]):
                yield _told(program, calls[: number + 1], as_fresh=given, plain=wanted)


def _is_wide(value: Any) -> bool:
    """Whether whole numbers are among a result that 64 bits do not hold: those of a call do."""
    if isinstance(value, tuple | list):
        return any(map(_is_wide, value))
    return type(value) is int and not -(2**63) <= value < 2**63


def _worlds(program: Program, call: Call, folder: Path) -> list[types.ModuleType] | None:
    """Return four modules of the program; None where it cannot be defined."""
    path = folder / f"{program.name}.py"
    path.write_text(program.text(call.captured), encoding="utf-8")
    code = compile(path.read_text(encoding="utf-8"), path, "exec")
    made = []
    for _ in range(4):
        spec = importlib.util.spec_from_file_location(program.name, path)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[program.name] = module
        try:
            exec(code, module.__dict__)
        except Exception:  # of NumPy's, or a refusal: nothing to be called
            return None
        made.append(module)
    return made


def _bind(module: types.ModuleType, call: Call) -> None:
    """Let a module capture what a call captures."""
    for at, expression in enumerate(call.captured):
        setattr(module, f"K{at}", eval(expression, module.__dict__))


Outcome = tuple[str, Any]


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function compiled without the cache, when it is called."""
    return lambda **given: pe.cd(function, backend="numpy")(**given)


def outcome(function: Callable[..., Any], module: types.ModuleType, call: Call) -> Outcome:
    """Return what a call does: "value" with all that it gives and changes, or "error"."""
    given = {name: eval(one, module.__dict__) for name, one in call.given.items()}
    try:
        result = function(**given)
    except pe.CdError as problem:
        return "error", problem.code
    except Exception as problem:  # the user's own
        return "error", type(problem).__name__
    after = [module.__dict__[f"K{at}"] for at in range(len(call.captured))]
    arrays = [one for one in (*given.values(), *after) if isinstance(one, np.ndarray)]
    return "value", (result, [one.copy() for one in arrays])


def alike(one: Any, other: Any, types: bool = True) -> bool:
    """Whether two outcomes are one: shapes, values but for rounding, signs of zeros; with `types`
    element types, and which of Python's and NumPy's numbers there are, too."""
    numbers = np.ndarray | np.generic | int | float | complex
    if isinstance(one, numbers) and isinstance(other, numbers):
        if type(one) is type(other) is int:
            return one == other  # of any length
        first, second = np.asarray(one), np.asarray(other)
        if "O" in (first.dtype.kind, second.dtype.kind):  # longer than any element type
            return bool(one == other) and (not types or type(one) is type(other))
        if first.shape != second.shape or (types and not _same_types(one, other)):
            return False
        if first.dtype.kind not in "fc" and second.dtype.kind not in "fc":
            return bool((first == second).all())
        few = 1e-2 if np.float16 in (first.dtype, second.dtype) else 1e-5
        parts = [(first.real, second.real), (first.imag, second.imag)]
        return all(
            np.allclose(a, b, few, 0.0, equal_nan=True)
            and bool((np.signbit(a) == np.signbit(b))[(a == 0) & (b == 0)].all())
            for a, b in parts
        )
    if isinstance(one, tuple | list):
        same = type(one).__name__ == type(other).__name__ and len(one) == len(other)
        return same and all(alike(a, b, types) for a, b in zip(one, other, strict=True))
    return type(one).__name__ == type(other).__name__ and (
        repr(one).split(" at 0x")[0] == repr(other).split(" at 0x")[0]
    )


def _same_types(one: Any, other: Any) -> bool:
    first, second = (np.asarray(value).dtype.newbyteorder("=") for value in (one, other))
    return type(one) is type(other) and first == second


def _told(program: Program, calls: Sequence[Call], **outcomes: Outcome) -> str:
    """Return what makes a difference come again, and what each way gave."""
    made = [
        f"    {'import and ' if one.is_new or not at else ''}K = {list(one.captured)}: "
        f"f({', '.join(f'{name}={value}' for name, value in one.given.items())})"
        for at, one in enumerate(calls)
    ]
    text = program.template.text.replace("\n", "\n    ")
    ways = [f"    {name:8} {what}" for name, what in outcomes.items()]
    return "\n".join([f"{program.name}, C = {program.constant}", f"    {text}", *made, *ways])


if __name__ == "__main__":
    sys.exit(main())
