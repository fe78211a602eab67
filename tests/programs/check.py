"""The checks of random programs: each gives a finding, or nothing.

loops      the interpreter of loops against that of assignments
<a pass>   the same after that pass
cc         compiled C against the interpreter
renamed    the passes on loops whose variables have names of their own, and shared ones
scheduled  compiled C against the interpreter of its loops, where these add in another order
cuda       kernels, threads as fibres in several orders, against the interpreter; see `devices`
warm       a second call against the first
same       the program written in another way against itself
plain      the interpreter against plain Python and NumPy
refused    a program that Python runs is refused (counted, no finding)
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.backends.cc.cpu_info import target
from plusequals.backends.interface import Code
from plusequals.backends.interpreter import InterpretedCode
from plusequals.base import settings
from plusequals.base.diagnostic import CdError, CdInternalError
from plusequals.lowering.analysis.carried_scalars import verify_scalars
from plusequals.lowering.ir.assignments import Procedure
from plusequals.lowering.ir.loops import Program as Loops
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize

from . import batch, renamed_loops
from .devices import OnDevice, on_device, orders
from .model import Owner, Program, plain
from .open_sizes import after_another_value, open_sizes
from .outcomes import Outcome, difference, near, nudged, nudged_all, run
from .plain_expressions import FirstZeros, joined_extreme
from .thresholds import lowered
from .variants import variant
from .ways import Ways

NAMES: dict[str, Any] = {"np": np, "math": math}
USUAL = Ways()


@dataclass(frozen=True, slots=True)
class Finding:
    """A program and what is wrong about it."""

    check: str
    why: str
    program: Program
    ways: Ways = USUAL

    def __str__(self) -> str:
        specs = "\n".join(f"    {spec}" for spec in self.program.args)
        return f"[{self.check}] {self.why}\n{self.program.text}{specs}\n{self.ways}\n"


@dataclass(slots=True)
class Case:
    """A program on its way through the checks."""

    program: Program
    ways: Ways
    function: Any = None
    code: batch.Deferred | None = None
    outcome: Outcome | None = None
    finding: Finding | None = None
    refused: str = ""


def check_all(programs: Sequence[Program], ways: Ways = USUAL) -> list[Case]:
    """Return what became of each program; C is compiled for all at once."""
    cases = [Case(p, ways) for p in programs]
    changed = settings.override(cache=False, **ways.settings())
    sizes = open_sizes(ways.open)
    with lowered(ways.thresholds), sizes, batch.installed() as backend, changed:
        for number, case in enumerate(cases):
            guarded(case, "compile", partial(_elaborated, case, number, backend))
            if case.code is None:
                continue
            guarded(case, "numpy", partial(_by_numpy if ways.numpy else _interpreted, case))
            if not ways.numpy:
                _interpreters(case, backend)
        ready = [case for case in cases if case.code is not None and case.outcome is not None]
        if ways.c:
            translated = partial(batch.compile_all, poisoned=ways.poison)
            _compiled(ready, "cc", translated, _cc_numpy if ways.numpy else _cc)
        if ways.cuda:
            _compiled(ready, "cuda", on_device, _cuda)
    return cases


def _interpreters(case: Case, backend: batch.Deferring) -> None:
    """Hold what is interpreted against each other, and against plain Python."""
    guarded(case, "loops", partial(_loops, case))
    if case.ways.passes:
        guarded(case, "passes", partial(_passes, case))
    guarded(case, "renamed", partial(_renamed, case))
    if case.ways.plain:
        guarded(case, "warm", partial(_warm, case))
        guarded(case, "plain", partial(_plain, case))
        guarded(case, "same", partial(_varied, case, backend))


def guarded(case: Case, check: str, step: Callable[[], None]) -> None:
    """Run a step; an exception that is no answer becomes a finding."""
    if case.finding is not None:
        return
    try:
        step()
    except Exception as why:
        _found(case, check, f"{type(why).__name__}: {why}")


def _found(case: Case, check: str, why: str) -> None:
    case.finding = Finding(check, why, case.program, case.ways)


def _elaborated(case: Case, number: int, backend: batch.Deferring) -> None:
    text = case.program.text.replace("def f(", f"def f{number}(", 1)
    try:
        case.function = pe.cd_from_source(text, NAMES, backend=batch.NAME)
        arguments = case.program.make()
        several = case.ways.numbers
        with after_another_value(case.function, arguments) if several else nullcontext():
            case.function.specialise(*arguments.values())
        case.code = backend.made[-1]
    except CdInternalError:
        raise
    except CdError as why:
        case.refused = f"{type(why).__name__} {why.code}: {why.diagnostics[0].message}"


def _call(case: Case, code: Code) -> Outcome:
    """Return what the code gives in the place of the interpreter."""
    assert case.code is not None
    case.code.code = code
    return run(case.program, lambda arguments: case.function(*arguments.values()))


def _interpreted(case: Case) -> None:
    case.outcome = _call(case, case.code.code)
    _no_internal(case, "numpy", case.outcome)
    if case.outcome.error == "CdTypeError CD0701":
        case.refused = case.outcome.error


def _no_internal(case: Case, check: str, outcome: Outcome) -> None:
    if outcome.error and not outcome.error.startswith("Cd") or "CdInternal" in outcome.error:
        _found(case, check, f"{outcome.error}: {outcome.message}")


def _loops(case: Case) -> None:
    _same(case, "loops", _call(case, batch.Loops(lower(case.code.procedure))))


def _passes(case: Case) -> None:
    """The loops after each pass that changes them, and after those alone that decide bits."""
    stages: list[tuple[str, Loops]] = []
    exact = case.outcome
    lowered = lower(case.code.procedure)
    optimize(lowered, target(), lambda name, now: stages.append((name, now)))
    for (_, before), (name, now) in itertools.pairwise(stages):
        if now != before and case.finding is None:
            verify_program(now)
            verify_scalars(now)
            outcome = _call(case, batch.Loops(now))
            rounds = name in ("vectorize_reductions", "form_fma")
            rounds |= name == "complex_to_pairs" and _has_complex_abs(case.program)
            _same(case, name.replace(" ", "_"), outcome, rounds, exact)
            exact = outcome if rounds else exact  # passes after these round as they do
    if case.finding is None:
        short, _ = optimize(lowered, replace(target(), short=True))
        rounds = _has_complex_abs(case.program)
        _same(case, "short", _call(case, batch.Loops(short)), rounds, exact)


def _has_complex_abs(program: Program) -> bool:
    """Whether absolute values of complex numbers may be computed, of which passes make `hypot`: C
    computes both alike, but the interpreters by two functions of NumPy, whose last bits differ."""
    is_complex = any(np.dtype(one.dtype).kind == "c" for one in program.args if one.is_array)
    return is_complex and re.search(r"\babs\(", program.text) is not None


def _renamed(case: Case) -> None:
    """The passes under other names of loops, for some programs."""
    if case.ways.passes or len(case.program.text) % 4 == 1:
        rng = random.Random(case.program.text)
        if why := renamed_loops.difference(lower(case.code.procedure), target(), rng):
            _found(case, "renamed", why)


def _cc(case: Case, code: Code) -> None:
    program, used = case.program, target()
    reorders = used.schedule and used.reorders
    products = reorders and "prod" in program.text  # in another order they overflow elsewhere
    if not products:
        _same(case, "cc", _call(case, code), program.rounds or reorders)
    if reorders and (products or not program.rounds) and case.finding is None:
        assert case.code is not None
        loops, _ = optimize(lower(case.code.procedure), used)
        case.outcome = _call(case, batch.Loops(loops))
        _same(case, "scheduled", _call(case, code), program.rounds)


def _overflow_elsewhere(case: Case, outcome: Outcome, expected: Outcome) -> bool:
    """Whether two outcomes differ in floats alone of which one is not finite, where products are
    reordered: in another order they overflow elsewhere. Poisoned memory is not finite, either."""
    used = target()
    reordered = used.schedule and used.reorders and "*=" in case.program.text
    if not reordered or case.ways.poison or outcome.error or expected.error:
        return False
    pairs = zip((*outcome.results, *outcome.arguments), (*expected.results, *expected.arguments))
    differs = False
    for one, other in pairs:
        a, b = np.asarray(one), np.asarray(other)
        if a.shape != b.shape or a.dtype != b.dtype or a.dtype.kind not in "fc":
            if not np.array_equal(a, b):
                return False
            continue
        apart = ~np.isclose(a, b, rtol=1e-5, atol=0.0, equal_nan=True)
        if np.any(apart & np.isfinite(a) & np.isfinite(b)):
            return False
        differs |= bool(np.any(apart))
    return differs


def _cuda(case: Case, code: OnDevice) -> None:
    """The same bits whatever the order of blocks and threads, and what the interpreter gives."""
    program, first, before = case.program, None, code.overflows()
    reorders = settings.current().profile != "strict"
    for _ in orders(code):
        outcome = _call(case, code)
        if first is None:
            first = outcome
            _same(case, "cuda", outcome, program.rounds or reorders, apart=True)
        elif case.finding is None and (why := difference(outcome, first)):
            _found(case, "cuda", f"another order of threads: {why}")
    if case.finding is None and (count := code.overflows() - before):
        _found(case, "cuda", f"{count} signed integers overflow")


def _same(
    case: Case,
    check: str,
    outcome: Outcome,
    rounds: bool = False,
    exact: Outcome | None = None,
    apart: bool = False,
) -> None:
    """Compare with what the interpreter gave, or with another outcome.

    Code that runs `apart` from its arguments leaves them as they were where it fails.
    """  # fmt: skip
    expected = exact or case.outcome
    assert expected is not None
    why = difference(outcome, expected, rooms=not apart, rtol=1e-5 if rounds else 0.0)
    if (
        why
        and not (rounds and _is_unstable(case))
        and not _overflow_elsewhere(case, outcome, expected)
        and not _sign_of_nan(case.program, expected)
    ):
        _found(case, check, why)


def _sign_of_nan(program: Program, expected: Outcome) -> bool:
    """Whether the sign of a NaN may decide: what computes one chooses it."""
    asks = re.search(r"\b(copysign|signbit)\(", program.text) is not None
    values = map(np.asarray, (*expected.results, *expected.arguments))
    return asks and any(v.dtype.kind in "fc" and np.isnan(v).any() for v in values)


def _is_unstable(case: Case) -> bool:
    """Whether the last bits of arguments decide the results, as of the sine of a large number."""
    assert case.code is not None and case.outcome is not None
    exact = InterpretedCode(case.code.procedure)
    case.code.code = exact
    other = run(case.program, lambda arguments: case.function(*map(nudged, arguments.values())))
    return difference(other, case.outcome, share=False, rooms=False, rtol=1e-5) is not None


def _warm(case: Case) -> None:
    """A second call of the same function with new arguments, for some programs."""
    assert case.code is not None
    if len(case.program.text) % 4:
        return
    _same(case, "warm", _call(case, InterpretedCode(case.code.procedure)))


def _varied(case: Case, backend: batch.Deferring) -> None:
    """The same program written in another way."""
    other = variant(case.program)
    if other is None or case.outcome is None or case.finding is not None:
        return
    how, program = other
    twin = Case(program, case.ways)
    _elaborated(twin, 0, backend)
    if twin.code is None:
        return  # another way may well be refused
    outcome = _call(twin, twin.code.code)
    shared = "CdValueError CD0708"
    if shared in (outcome.error, case.outcome.error):
        return  # copies of arguments may share memory in another way
    if {outcome.error, case.outcome.error} & _FAULTS and _has_empty_array(case.program):
        return  # what is stored in no element need not be computed
    rtol = 1e-5 if case.program.rounds else 0.0
    if why := difference(outcome, case.outcome, share=False, rooms=False, rtol=rtol):
        _found(case, "same", f"{how}: {why}\n{program.text}")


_FAULTS = {f"CdZeroDivisionError CD076{n}" for n in (3, 4)} | {"CdValueError CD0765"}
"""The errors of checked arithmetic."""


def _has_empty_array(program: Program) -> bool:
    is_empty_slice = re.search(r"\b(\d+):\1\b|\[:0\b|, :0\b", program.text) is not None
    return is_empty_slice or any(spec.shape and 0 in spec.shape for spec in program.args)


def _plain(case: Case) -> None:
    outcome = case.outcome
    if outcome is None:
        return
    expected = of_python(case.program)
    if outcome.error:
        case.refused = f"run time: {outcome.error}: {outcome.message.splitlines()[0]}"
        return
    against(case, "plain", outcome, expected)


def of_python(program: Program, names: Mapping[str, Any] = NAMES, copies: bool = False) -> Outcome:
    """Return what plain Python and NumPy give, copying what is assigned first where it `copies`."""
    function = plain(program.text, names, copies)
    return run(program, partial(called, program, function, function.__globals__))


def called(
    program: Program, function: Any, names: dict[str, Any], arguments: Mapping[str, Any]
) -> Any:
    """Return what a function gives, with what it captures set in its names."""
    names.update((name, arguments[name]) for name in program.captured)
    around = program.captured | program.owned
    given = [one for name, one in arguments.items() if name not in around]
    if program.owned:
        given.append(Owner(**{name: arguments[name] for name in program.owned}))
    return function(*given)


def against(case: Case, check: str, outcome: Outcome, expected: Outcome) -> None:
    """Hold an outcome against that of plain Python and NumPy."""
    program = case.program
    if expected.error.startswith("Unknown"):
        return  # the oracle does not know the program
    if expected.undefined:
        return  # ours saturates; what NumPy gives depends on the machine
    if _wraps(program, outcome, expected):
        return
    joined = re.search(r"^ +(for|while|if) | if |\bm(ax|in)\(", program.text, re.MULTILINE)
    if joined or program.calls:  # a view at an integer of the call is returned as a copy
        extremes = re.search(r"\bm(ax|in)\(", program.text) is not None
        arrays = _RETURNS_EITHER.search(program.text) or _WIDENS.search(program.text)
        expected = _may_copy(_joined(expected, outcome, extremes, bool(arrays)), outcome)
    why = difference(outcome, expected, signs=False, rtol=1e-5 if program.rounds else 0.0)
    if (
        why is not None
        and not _inexact(program, expected)
        and not _zeros_or_types_decide(program, outcome)
        and not _rounds_once(outcome, expected)
        and not _averages(program, outcome, expected)
        and not _adds_stored(program, outcome, expected)
        and difference(outcome, of_python(program, copies=True), signs=False) is not None
    ):
        _found(case, check, why)


def _wraps(program: Program, outcome: Outcome, expected: Outcome) -> bool:
    """Whether an integer is stored in an element of a narrower type: it wraps, which is an error
    of NumPy's where the integer is a number, not an array."""
    raised = expected.error.startswith("OverflowError") and "out of bounds" in expected.message
    stores = re.search(r"\w\[[^\n]*\] \S{0,2}= ", program.text) is not None
    return raised and stores and not outcome.error


def _averages(program: Program, outcome: Outcome, expected: Outcome) -> bool:
    """Whether results differ by last bits, of an average: that of integers is made in float64, in
    which those above 2**53 round by the order in which they are added."""
    averages = re.search(r"\b(mean|std|var|average)\(", program.text) is not None
    return averages and difference(outcome, expected, signs=False, rtol=1e-13) is None


def _adds_stored(program: Program, outcome: Outcome, expected: Outcome) -> bool:
    """Whether results differ by last bits of float32, where integers of any size are stored in an
    array of that type which the program makes, and added: NumPy adds the elements in pairs."""
    wild = any(one.kind == "wild" and np.dtype(one.dtype).kind in "iu"
               for one in program.args if one.is_array)  # fmt: skip
    stores = "dtype=np.float32" in program.text
    adds = re.search(r"\b(sum|mean)\(", program.text) is not None
    if not (program.reorders and wild and stores and adds):
        return False
    return difference(outcome, expected, signs=False, rtol=2.0**-21) is None


def _rounds_once(outcome: Outcome, expected: Outcome) -> bool:
    """Whether results in float16 alone differ, by a few units: each operation is rounded to it in
    NumPy, and here what is stored."""
    halves = [np.asarray(v).dtype == np.float16 for v in (*expected.results, *expected.arguments)]
    pairs = zip((*outcome.results, *outcome.arguments), (*expected.results, *expected.arguments))
    return any(halves) and all(
        near(one, other, 2.0**-8 if is_half else 0.0)
        for (one, other), is_half in zip(pairs, halves)
    )


def _by_numpy(case: Case) -> None:
    case.outcome = of_python(case.program)


def _cc_numpy(case: Case, code: Code) -> None:
    """Compiled C against plain Python and NumPy, where nothing is interpreted."""
    assert case.outcome is not None, "of plain Python"
    outcome = _call(case, code)
    _no_internal(case, "cc", outcome)
    if case.finding is None and outcome.error:
        case.refused = f"run time: {outcome.error}: {outcome.message.splitlines()[0]}"
    elif case.finding is None:
        against(case, "cc", outcome, case.outcome)


def _are_same(one: Any, other: Any) -> bool:
    """Whether two numbers are equal, or both NaN."""
    return bool(one == other or (one != one and other != other))


_RETURNS_EITHER = re.compile(r"^ +if [^\n]*:\n +return \w+\n +return \w+$", re.MULTILINE)
"""A function that returns one of two names by a test."""

_WIDENS = re.compile(r"^ +while [^\n]*:\n +\w+ [-+*/]= \d*\.\d+$", re.MULTILINE)
"""A number that a loop, if it runs, makes a float: it has the joined type after it, as what is
computed of it has."""


def _joined(expected: Outcome, outcome: Outcome, extremes: bool, arrays: bool) -> Outcome:
    """Return what Python gave, its numbers, and `arrays`, in the types that the joins of all
    branches give, and in their shapes where `extremes`: Python's `max` of a number and an array of
    one element gives one of them."""
    pairs = zip(expected.results, outcome.results)
    results = tuple(
        np.result_type(b).type(a) if _is_number(a) and _is_number(b) and _are_same(a, b)
        else b if extremes and _is_number(a) and np.size(b) == 1 and _are_same(a, np.ravel(b)[0])
        else a.astype(b.dtype) if arrays and _is_widened(a, b)
        else a
        for a, b in pairs
    )  # fmt: skip
    if len(results) != len(expected.results):
        return expected
    return replace(expected, results=results)


def _is_widened(a: Any, b: Any) -> bool:
    """Whether an array has, elsewhere, a type that holds its elements and others."""
    both = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    return both and b.dtype == np.result_type(a, b)


def _may_copy(expected: Outcome, outcome: Outcome) -> Outcome:
    """Return what Python gave, with ours free to return a copy of what names exchange."""
    ours = outcome.sharing
    if [len(row) for row in ours] != [len(row) for row in expected.sharing]:
        return expected
    sharing = tuple(
        tuple(one and other for one, other in zip(row, there))
        for row, there in zip(ours, expected.sharing)
    )
    return replace(expected, sharing=sharing)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number | np.bool_)


def _zeros_or_types_decide(program: Program, outcome: Outcome) -> bool:
    """Whether plain NumPy gives an outcome where of two zeros the first is the larger one, and
    Python's extremes of numbers have their joined type."""
    extremes = {"max": joined_extreme(max), "min": joined_extreme(min)}
    expected = of_python(program, {**NAMES, "np": FirstZeros(), **extremes})
    rtol = 1e-5 if program.rounds else 0.0
    return difference(outcome, expected, signs=False, rtol=rtol) is None


def _inexact(program: Program, expected: Outcome) -> bool:
    """Whether plain NumPy's own result depends on the order in which it adds, or on last bits."""
    if program.rounds and _changes(program, expected, nudged_all, 1e-5):
        return True
    return program.reorders and _changes(program, expected, _widened, 0.0)


def _changes(
    program: Program,
    expected: Outcome,
    change: Callable[[Mapping[str, Any]], dict[str, Any]],
    rtol: float,
) -> bool:
    """Whether changed arguments give other values in plain Python."""
    function = plain(program.text, NAMES)
    names = function.__globals__
    other = run(program, lambda made: called(program, function, names, change(made)))
    if other.error:
        return change is nudged_all
    pairs = zip((*other.results, *other.arguments), (*expected.results, *expected.arguments))
    return any(not near(a, b, rtol) for a, b in pairs)


def _widened(arguments: Mapping[str, Any]) -> dict[str, Any]:
    wide = {"float64": np.longdouble, "float32": np.float64, "complex128": np.clongdouble,
            "complex64": np.complex128}  # fmt: skip
    return {
        name: value.astype(wide.get(value.dtype.newbyteorder("=").name, value.dtype))
        if isinstance(value, np.ndarray)
        else value
        for name, value in arguments.items()
    }


def _compiled(
    cases: list[Case],
    check: str,
    compile_all: Callable[[Sequence[Procedure]], Sequence[Any]],
    run_one: Callable[[Case, Any], None],
) -> None:
    """Compile all at once, or in halves where the compiler refuses that, and check each."""
    try:
        codes = compile_all([case.code.procedure for case in cases if case.code is not None])
    except Exception as why:
        if len(cases) == 1:
            _found(cases[0], check, f"{type(why).__name__}: {why}")
        for half in (cases[: len(cases) // 2], cases[len(cases) // 2 :]):
            if len(cases) > 1:
                _compiled(half, check, compile_all, run_one)
        return
    for case, code in zip(cases, codes):
        guarded(case, check, partial(run_one, case, code))
