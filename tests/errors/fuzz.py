"""A mutation fuzzer of sources: every mutant runs, or raises an error of the family.

Valid functions are mutated by tokens (dropped, doubled, swapped, replaced by tokens of others) and
by their trees (operators, names, constants, subscripts, arguments and statements exchanged), and
called with arguments of which some are replaced by what does not fit. Run it by

    python -m tests.errors.fuzz --count 100000 --seed 7

which prints each mutant that raised anything else, with its seed, and how many there were of each
kind. A mutant that asks for more rounds or bytes than are sensible is not run, only compiled.
"""

from __future__ import annotations

import argparse
import ast
import copy
import io
import random
import signal
import sys
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass

import numpy as np

import plusequals as pe
from plusequals.base.diagnostic import CdError, CdInternalError
from tests.errors.case import Case
from tests.errors.seeds import SEEDS, arguments
from tests.programs.isolate import Child, Crashed, first_ready

SECONDS = 10
"""How much of a processor one mutant may take before it counts as a hang."""
_WAITS = 20
"""So many times as long it may wait for others: the machine may have other work."""
_EACH = 250
"""Mutants in one process: what a hang leaves behind ends with it."""
TOKENS = (
    "i j k x y 0 1 -1 2.5 None True 'a' ... () [] : , + - * / // % ** @ & | ~ << < <= == != = += "
    "( ) [ ] and or not in is if else for while return break range len sum max np np.exp np.sort "
    "x[0] x[i] x[1:] [k] [i, j] .T .shape .sum() .astype lambda pad clamp wrap where 10**30 10**400"
).split()


@dataclass(frozen=True)
class Mutant:
    """A source and the arguments to call it with; `number` makes it again."""

    number: int
    text: str
    arguments: tuple[object, ...]


class Hang(BaseException):
    """A mutant took too long."""


def mutants(first: int, count: int) -> Iterator[Mutant]:
    """Yield mutants by their numbers."""
    for number in range(first, first + count):
        yield mutant(number)


def mutant(number: int) -> Mutant:
    """Return one mutant; the same for the same number."""
    chance = random.Random(number)
    seed = SEEDS[chance.randrange(len(SEEDS))]
    text = seed.text
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        change = chance.choice((_by_token, _by_tree, _by_tree, _by_tree, _by_tree))
        text = change(text, chance)
    return Mutant(number, text, _arguments(seed, chance))


# ---------------------------------------------------------------- changes of the text


def _by_token(text: str, chance: random.Random) -> str:
    try:
        tokens = [
            t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.string.strip()
        ]
    except (tokenize.TokenError, SyntaxError):
        return text
    places = [t for t in tokens if t.start[0] > 1]
    if not places:
        return text
    lines = text.split("\n")
    token = chance.choice(places)
    row, begin, end = token.start[0] - 1, token.start[1], token.end[1]
    if token.start[0] != token.end[0] or row >= len(lines):
        return text
    other = chance.choice((*TOKENS, *(t.string for t in tokens)))
    new = chance.choice(
        ("", f"{token.string} {token.string}", other, other, f"{token.string} {other}")
    )
    lines[row] = lines[row][:begin] + new + lines[row][end:]
    return "\n".join(lines)


def _by_tree(text: str, chance: random.Random) -> str:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    function = tree.body[0]
    if not isinstance(function, ast.FunctionDef) or not function.body:
        return text
    chance.choice((_exchange, _exchange, _operator, _constant, _statements, _call))(
        function, chance
    )
    try:
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    except (ValueError, TypeError, AttributeError, RecursionError):
        return text


def _expressions(function: ast.FunctionDef) -> list[tuple[ast.AST, str, int | None]]:
    """Every place of the body that holds an expression: its owner, the field, the position."""
    found: list[tuple[ast.AST, str, int | None]] = []
    for statement in function.body:
        for node in ast.walk(statement):
            for name, value in ast.iter_fields(node):
                if isinstance(value, ast.expr):
                    found.append((node, name, None))
                elif isinstance(value, list):
                    found += [
                        (node, name, n) for n, x in enumerate(value) if isinstance(x, ast.expr)
                    ]
    return found


def _get(place: tuple[ast.AST, str, int | None]) -> ast.expr:
    value = getattr(place[0], place[1])
    return value if place[2] is None else value[place[2]]


def _set(place: tuple[ast.AST, str, int | None], value: ast.expr) -> None:
    if place[2] is None:
        setattr(place[0], place[1], value)
    else:
        getattr(place[0], place[1])[place[2]] = value


def _exchange(function: ast.FunctionDef, chance: random.Random) -> None:
    """Put a copy of one expression, or something small, where another stands."""
    places = _expressions(function)
    if not places:
        return
    at = chance.choice(places)
    if chance.random() < 0.6:
        _set(at, copy.deepcopy(_get(chance.choice(places))))
        return
    small = (
        "0 -1 1.5 None 'a' True ... i k x y (x,) [x,y] x[0] x[i] x.T np.exp -x x>0 10**30".split()
    )
    _set(at, ast.parse(chance.choice(small), mode="eval").body)


def _operator(function: ast.FunctionDef, chance: random.Random) -> None:
    kinds: dict[type, tuple[type, ...]] = {
        ast.operator: (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow,
                       ast.MatMult, ast.BitAnd, ast.LShift, ast.RShift, ast.BitXor),
        ast.cmpop: (ast.Lt, ast.GtE, ast.Eq, ast.NotEq, ast.Is, ast.In, ast.NotIn),
        ast.unaryop: (ast.USub, ast.Not, ast.Invert, ast.UAdd),
        ast.boolop: (ast.And, ast.Or),
    }  # fmt: skip
    places = [
        (node, name, value, kind)
        for node in ast.walk(function)
        for name, value in ast.iter_fields(node)
        for kind in kinds
        if isinstance(value, kind)
        or (isinstance(value, list) and value and isinstance(value[0], kind))
    ]
    if not places:
        return
    node, name, value, kind = chance.choice(places)
    new = chance.choice(kinds[kind])()
    setattr(node, name, [new, *value[1:]] if isinstance(value, list) else new)


def _constant(function: ast.FunctionDef, chance: random.Random) -> None:
    constants = [n for n in ast.walk(function) if isinstance(n, ast.Constant)]
    if constants:
        values = (0, -1, 1, 3, 7, 2.5, None, "a", True, 2**62, 10**30, 1j, ..., 1e400, 255)
        chance.choice(constants).value = chance.choice(values)


def _statements(function: ast.FunctionDef, chance: random.Random) -> None:
    bodies = [
        node.body for node in ast.walk(function) if isinstance(getattr(node, "body", None), list)
    ]
    body = chance.choice(bodies)
    at = chance.randrange(len(body))
    source = chance.choice(chance.choice(bodies))
    match chance.randrange(5):
        case 0 if len(body) > 1:
            del body[at]
        case 1:
            body.insert(at, copy.deepcopy(source))
        case 2 if source is not body[at]:
            test = ast.parse(
                chance.choice(("x[0] > 0", "i > 1", "x > 0", "True")), mode="eval"
            ).body
            body[at] = ast.If(test, [copy.deepcopy(source)], [])
        case 3:
            over = ast.parse(chance.choice(("range(3)", "x", "range(n)", "zip(x, y)")), mode="eval")
            body[at] = ast.For(ast.Name("k", ast.Store()), over.body, [copy.deepcopy(source)], [])
        case _:
            body[:] = chance.sample(body, len(body))


def _call(function: ast.FunctionDef, chance: random.Random) -> None:
    """Change the arguments of a call, or wrap an expression into one."""
    names = (
        "np.sum np.max np.sort np.cumsum np.where np.dot np.stack np.concatenate np.reshape "
        "np.zeros np.arange np.clip np.argmax np.linalg.inv np.transpose np.einsum np.repeat "
        "np.diff np.mean np.searchsorted np.histogram np.moveaxis np.pad np.roll np.full np.outer "
        "np.take np.flip "
        "sum max len abs int float range zip enumerate list tuple print exp where sum[k] np.nope"
    ).split()  # fmt: skip
    calls = [n for n in ast.walk(function) if isinstance(n, ast.Call)]
    if calls and chance.random() < 0.5:
        call = chance.choice(calls)
        match chance.randrange(4):
            case 0 if call.args:
                call.args.pop(chance.randrange(len(call.args)))
            case 1 if call.args:
                call.args.append(copy.deepcopy(chance.choice(call.args)))
            case 2:
                word = chance.choice(
                    ("axis", "dtype", "out", "keepdims", "initial", "nope", "where")
                )
                value = ast.parse(
                    chance.choice(("0", "5", "None", "x", "'a'", "(0, 1)")), mode="eval"
                )
                call.keywords.append(ast.keyword(word, value.body))
            case _:
                call.func = ast.parse(chance.choice(names), mode="eval").body
        return
    places = _expressions(function)
    if places:
        at = chance.choice(places)
        head = ast.parse(chance.choice(names), mode="eval").body
        _set(at, ast.Call(head, [copy.deepcopy(_get(at))], []))


def _arguments(seed: Case, chance: random.Random) -> tuple[object, ...]:
    given = list(arguments(seed))
    if given and chance.random() < 0.4:
        odd: tuple[object, ...] = (
            None, "a", 3, -1, 0, 2.5, True, 1j, 10**30, (), [], [1.0, 2.0, 3.0], (1, 2), {"a": 1},
            np.float32(2), np.int8(3), np.zeros(0), np.zeros((0, 3)), np.array(2.0),
            np.ones(3, int),
            np.ones((3, 4), np.float32), np.ones((2, 3, 4)), np.ones(4, complex), np.ones(3, bool),
            np.arange(12.0).reshape(3, 4).T, np.ones(7)[::-2], np.ones(3, object), np.array(["a"]),
            np.array([0, 2, 1]), np.array([5, -9]), np.full(4, np.nan), np.ones(3, np.uint8),
            np.ones(3, np.float16), len, np, pe.tensor("t", (3,)), np.broadcast_to(1.0, (3,)),
        )  # fmt: skip
        given[chance.randrange(len(given))] = chance.choice(odd)
        if len(given) > 1 and chance.random() < 0.1:
            given[1] = given[0]
    return tuple(given)


# ---------------------------------------------------------------- running

_ENDLESS = ("while", "10 ** ", "10**", "<<", str(2**62))
"""What may stand in a mutant that runs for ever, or for more than the memory."""


def outcome(one: Mutant, backend: str = "numpy") -> str:
    """Return `ran`, or the code of the error; raises whatever else the mutant raised."""
    quiet = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(quiet), np.errstate(all="ignore"), _limited():
        warnings.simplefilter("ignore")
        names = {"np": np, "pe": pe}
        try:
            function = pe.cd_from_source(one.text, names, "mutant.py", backend)
            if any(word in one.text for word in _ENDLESS):
                function.procedure(*one.arguments)  # it may run for ever
                return "compiled"
            function(*one.arguments)
        except CdInternalError:
            raise
        except CdError as problem:
            assert str(problem)
            return problem.code
    return "ran"


@contextmanager
def _limited() -> Iterator[None]:
    """Raise Hang after some seconds of work, or many that pass, where signals exist."""

    def stop(*_: object) -> None:
        raise Hang(f"took more than {SECONDS} s")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop), signal.signal(signal.SIGPROF, stop)
    signal.alarm(SECONDS * _WAITS)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGALRM, before[0])
        signal.signal(signal.SIGPROF, before[1])


def tried(numbers: range, backend: str) -> tuple[Counter[str], list[str], range]:
    """Return how many mutants came to what, what the failed ones are, and what is left to try.

    Nothing more is tried here after a hang.
    """
    seen, failed = Counter[str](), list[str]()
    for number in numbers:
        one = mutant(number)
        try:
            seen[outcome(one, backend)] += 1
        except (Exception, Hang) as problem:
            failed.append(_described(one, problem))
            if isinstance(problem, Hang):
                return seen, failed, range(number + 1, numbers.stop)
    return seen, failed, range(0)


def _described(one: Mutant, problem: BaseException) -> str:
    return (
        f"# mutant {one.number}: {type(problem).__name__}: {str(problem)[:200]}\n"
        f"{one.text}\n# arguments {str(one.arguments)[:200]}\n"
    )


def _all_tried(numbers: range, backend: str, jobs: int) -> tuple[Counter[str], int]:
    """Try mutants in several processes at once; print what failed, and return how many came to
    what and how many failed."""
    seen, failed = Counter[str](), 0
    waiting = [range(n, min(n + _EACH, numbers.stop)) for n in numbers[::_EACH]]
    running: dict[Child, range] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            chunk = waiting.pop(0)
            running[Child(tried, chunk, backend)] = chunk
        child = first_ready(list(running))
        chunk = running.pop(child)
        try:
            counts, problems, left = child.result(_EACH * SECONDS)
        except Crashed as why:
            counts, problems, left = {}, [f"# mutants {chunk}: {why}"], range(0)
        seen.update(counts)
        failed += len(problems)
        for problem in problems:
            print(problem, flush=True)
        waiting += [left] if left else []
    return seen, failed


def main() -> int:
    """Run the fuzzer as a command; returns 1 where a mutant failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    options = parser.parse_args()
    numbers = range(options.seed, options.seed + options.count)
    seen, failed = _all_tried(numbers, options.backend, options.jobs)
    for code, times in seen.most_common():
        print(f"{times:8} {code}")
    print(f"{failed:8} failed of {options.count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
