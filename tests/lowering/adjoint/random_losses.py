"""Random programs whose results are one real number, and whether their gradients are right."""

from __future__ import annotations

import ast
import random
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.base import settings
from plusequals.base.diagnostic import CdError, CdInternalError
from tests.programs.batch import NAME, Deferring, compile_all, installed
from tests.programs.check import NAMES
from tests.programs.devices import on_device, orders
from tests.programs.generate import generate
from tests.programs.model import ArgSpec, Program
from tests.programs.thresholds import lowered
from tests.programs.ways import Ways as Settings
from tests.programs.ways import drawn

from .extended import Extended
from .moved import Moved
from .pending import Ended, by_threads, compiled, remembering
from .random_control import program as control
from .random_ways import LOCALLY_ROUNDED, Ways, given

KINDS = ("index", "array", "mixed", "nest", "flow", "nested", "python", "control")
_DRAWN = (*KINDS[:3], *KINDS, *KINDS[-1:] * 5)
USUAL = Settings()
"""How programs are compiled where nothing is drawn."""


def settings_of(seed: int, batch: int, cuda: bool = False) -> Settings:
    """Return under which settings a batch is compiled: in one of seven threads divide every loop
    that they may. Few are optimized by the C compiler, which takes longer than all the rest."""
    rng = random.Random(f"gradient {seed} batch {batch}")
    ways = drawn(rng, False, 0.15)
    optimize = rng.choice((0,) * 18 + (1, 3))
    if cuda:  # small programs reach all that schedules do for kernels there only
        ways = replace(ways, c=False, cuda=True, thresholds=rng.randrange(1, 1 << 30))
    return replace(ways, checked=False, optimize=optimize)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a program."""

    kind: str
    """"right", "rough", why it was refused, or what was wrong."""
    why: str
    program: Program
    wrong: bool = True
    seen: Counter[str] = field(default_factory=Counter)
    """What was held against what, or could not be."""

    def __str__(self) -> str:
        specs = "\n".join(f"    {spec}" for spec in self.program.args)
        return f"[{self.kind}] {self.why}\n{self.program.text}{specs}\n"


def program_of(seed: int, number: int, kind: str | None = None) -> Program:
    """Return a program, most of whose arrays are of float64."""
    rng = random.Random(f"gradient {seed} {number}")
    chosen = kind or rng.choice(_DRAWN)
    if chosen == "control":
        return control(rng)
    made = generate(rng, chosen)
    whole = rng.random()  # programs about integers alone are few
    return replace(made, args=tuple(_retyped(rng, spec, whole) for spec in made.args))


def _retyped(rng: random.Random, spec: ArgSpec, whole: float) -> ArgSpec:
    kinds = "fc" if whole < 0.1 else "fciu"
    of_numbers = spec.is_array and np.dtype(spec.dtype).kind in kinds
    if not of_numbers or spec.kind.startswith("index:") or spec.layout in ("readonly", "zero"):
        return spec
    if np.dtype(spec.dtype).kind in "iu" and rng.random() < 0.15:
        return spec
    return replace(spec, dtype="float64")


def answers(programs: Sequence[Program], ways: Settings = USUAL) -> list[Answer]:
    """Return whether the gradients of programs are right; all are compiled at once."""
    quiet, calm = warnings.catch_warnings(), np.errstate(all="ignore")
    changed = settings.override(backend=NAME, cache=False, **ways.settings())
    with quiet, calm, lowered(ways.thresholds), installed() as backend, changed:
        warnings.simplefilter("ignore")
        checked = [_checked(program, backend) for program in programs]
        pending = [(n, one) for n, (_, ways) in enumerate(checked) if ways for one in ways.pending]
        if ways.cuda:
            ended = compiled(remembering(pending, "another order"), on_device, orders)
        else:
            translate = partial(compile_all, poisoned=ways.poison)
            ended = compiled(pending, translate)
            if ways.thresholds:
                first = [(n, one) for n, one in pending if one.way == "native" and n not in ended]
                ended |= by_threads(first, translate)
    wrong = {n: Answer(why.kind, why.why, programs[n]) for n, why in ended.items()}
    return [wrong.get(n, one) for n, (one, _) in enumerate(checked)]


def answer(program: Program, ways: Settings = USUAL) -> Answer:
    """Return whether the gradient of a program is right."""
    return answers([program], ways)[0]


def _checked(program: Program, backend: Deferring) -> tuple[Answer, Ways | None]:
    """Return what is known of a program before anything is compiled, and what is to be."""
    held: list[Ways] = []
    try:
        if any(spec.view for spec in program.args):
            raise Ended("refused: arguments that share memory")
        _check(loss_text(program), program, backend, held)
        found = Answer("right", "", program, False)
    except Ended as end:
        found = Answer(end.kind, end.why, program, end.wrong)
    except Exception:
        told = traceback.format_exc(limit=-4)
        found = Answer(told.strip().rpartition("\n")[2][:60], told, program)
    ways = held[0] if held and not found.wrong else None
    return replace(found, seen=Counter() if ways is None else ways.seen), ways


def loss_text(program: Program) -> str:
    """Return the text of a function that sums what a program returns and is given."""
    try:
        results = pe.cd_from_source(program.text, NAMES)(*given(program))
    except CdInternalError:
        raise
    except CdError as why:
        raise Ended(f"refused: {why.code} of the program") from None
    tree = ast.parse(program.text)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    last = function.body.pop()
    if not isinstance(last, ast.Return) or last.value is None:
        raise Ended("refused: it returns nothing")
    many = isinstance(last.value, ast.Tuple)
    texts = [ast.unparse(e) for e in last.value.elts] if many else [ast.unparse(last.value)]
    pairs = zip(texts, results if many else (results,), strict=True)
    terms = [_term(text, result) for text, result in pairs if _is_real(result)]
    terms += [_term(s.name, np.zeros(s.shape)) for s in program.args if s.dtype == "float64"]
    terms = [f"{round(0.5 + 0.1 * n, 1)} * {term}" for n, term in enumerate(terms)]
    if not terms:
        raise Ended("refused: nothing real")
    function.body.append(ast.parse(f"return {' + '.join(terms)}").body[0])
    return ast.unparse(tree) + "\n"


def _is_real(value: Any) -> bool:
    return not isinstance(value, tuple | list) and np.asarray(value).dtype.kind == "f"


def _term(text: str, value: Any) -> str:
    inside = f"np.arcsinh({text})"
    return f"np.sum({inside})" if isinstance(value, np.ndarray) and value.ndim else inside


def _check(text: str, program: Program, backend: Deferring, held: list[Ways]) -> None:
    loss = pe.cd_from_source(text, NAMES)
    after = given(program)
    try:
        value = loss(*after)
        match = loss.matched(*given(program))[0]
    except CdInternalError:
        raise
    except CdError as why:
        raise Ended(f"refused: {why.code} of the sum") from None
    if not np.isfinite(value):
        raise Ended("rough")
    typed = match.specialization.typed
    places = {
        str(path): at
        for at, (path, p) in enumerate(zip(typed.passed, typed.procedure.parameters, strict=True))
        if path.is_parameter and p.node.dtype.kind == "f"
    }
    names = [s.name for s in program.args if s.dtype == "float64" and s.name in places]
    if not names:
        raise Ended("refused: nothing to differentiate in")
    derived = pe.value_and_gradient(loss, wrt=names)
    arguments, first = given(program), len(backend.made)
    try:
        again, gradients = derived(*arguments)
    except CdError as why:
        if why.code == "CD0480":
            raise Ended("refused: " + _reason(why)) from None
        raise Ended(f"no text {why.code}", _told(text, derived, program, why), True) from None
    except Exception as why:
        raise Ended(type(why).__name__, _told(text, derived, program, why), True) from None
    ways = Ways(loss, derived, names, program, text, backend)
    source = ways.source()
    if not _same(arguments, after):
        raise Ended("arguments", f"{text}\n{source}", True)
    if abs(again - value) > 1e-12 * abs(value):
        raise Ended("value", f"{again}, not {value}\n{text}\n{source}", True)
    ways.check([again, *gradients], backend.made[first:])
    held.append(ways)
    if not all(np.all(np.isfinite(one)) for one in gradients):
        raise Ended("no number, as of a root at 0")
    if LOCALLY_ROUNDED.search(source):
        raise Ended("right, by the assignments alone")  # differences are of rounding errors
    moved = Moved(typed.procedure, match.held, [places[name] for name in names])
    told, seed = f"{names}\n{text}\n{source}", len(program.text)
    try:
        moved.check(value, gradients, told, seed)
    except Ended as end:
        if not end.wrong:
            raise
        moved.check(value, _extended(derived, program), told, seed)
        raise Ended("right, but for overflow and cancellation in float64") from None


def _extended(derived: Any, program: Program) -> list[Any]:
    """Return the gradients in extended precision, which tell wrong ones from rounded ones."""
    match = derived.matched(*given(program))[0]
    typed = match.specialization.typed
    out = Extended(typed.procedure).run(match.held)
    _, cotangents = typed.returns.items
    return [out[one.number] for one in cotangents.items]


def _told(text: str, derived: Any, program: Program, why: Exception) -> str:
    try:
        source = derived.text(*given(program))
    except Exception:
        source = ""
    return f"{type(why).__name__}: {why}\n{text}\n{source}"


def _reason(why: CdError) -> str:
    message = why.diagnostics[0].message
    return message.partition("gradient: ")[2].removesuffix(" has no derivative here")


def _same(one: list[Any], other: list[Any]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(np.allclose(a, b, 1e-9, 1e-9, equal_nan=True) for a, b in pairs)
