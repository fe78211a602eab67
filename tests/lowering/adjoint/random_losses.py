"""Random programs whose results are one real number, and whether their gradients are right."""

from __future__ import annotations

import ast
import random
import re
import traceback
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import plusequals as pe
from plusequals.base.diagnostic import CdError, CdInternalError
from tests.programs.check import NAMES
from tests.programs.generate import generate
from tests.programs.model import ArgSpec, Program

from .random_control import program as control
from .random_ways import Ended, Ways, given

KINDS = ("index", "array", "mixed", "nest", "flow", "nested", "python", "control")
_DRAWN = (*KINDS[:3], *KINDS, *KINDS[-1:] * 5)
STEP = 2e-5
"""The smallest of the three steps of differences."""
RTOL = 1e-6


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a program."""

    kind: str
    """"right", "rough", why it was refused, or what was wrong."""
    why: str
    program: Program
    wrong: bool = True

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


def answer(program: Program) -> Answer:
    """Return whether the gradient of a program is right."""
    settings = pe.override("numpy", cache=False)
    with warnings.catch_warnings(), np.errstate(all="ignore"), settings:
        warnings.simplefilter("ignore")
        try:
            if any(spec.view for spec in program.args):
                raise Ended("refused: arguments that share memory")
            _check(loss_text(program), program)
        except Ended as end:
            return Answer(end.kind, end.why, program, end.wrong)
        except Exception:
            told = traceback.format_exc(limit=-4)
            return Answer(told.strip().rpartition("\n")[2][:60], told, program)
    return Answer("right", "", program, False)


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


def _check(text: str, program: Program) -> None:
    loss = pe.cd_from_source(text, NAMES)
    after = given(program)
    try:
        value = loss(*after)
        typed = loss.matched(*given(program))[0].specialization.typed
    except CdInternalError:
        raise
    except CdError as why:
        raise Ended(f"refused: {why.code} of the sum") from None
    if not np.isfinite(value):
        raise Ended("rough")
    pairs = zip(typed.passed, typed.procedure.parameters, strict=True)
    real = {str(path) for path, p in pairs if path.is_parameter and p.node.dtype.kind == "f"}
    names = [spec.name for spec in program.args if spec.dtype == "float64" and spec.name in real]
    if not names:
        raise Ended("refused: nothing to differentiate in")
    derived = pe.value_and_gradient(loss, wrt=names)
    arguments = given(program)
    try:
        again, gradients = derived(*arguments)
    except CdError as why:
        if why.code == "CD0480":
            raise Ended("refused: " + _reason(why)) from None
        raise Ended(f"no text {why.code}", _told(text, derived, program, why), True) from None
    except Exception as why:
        raise Ended(type(why).__name__, _told(text, derived, program, why), True) from None
    ways = Ways(loss, derived, names, program, text)
    source = ways.source()
    if not _same(arguments, after):
        raise Ended("arguments", f"{text}\n{source}", True)
    if abs(again - value) > 1e-12 * abs(value):
        raise Ended("value", f"{again}, not {value}\n{text}\n{source}", True)
    ways.check([again, *gradients])
    if not all(np.all(np.isfinite(one)) for one in gradients):
        raise Ended("no number, as of a root at 0")
    if re.search(r"\b(f16|f32|bf16)\b", source):
        raise Ended("right, by the assignments alone")  # differences are of rounding errors
    _differences(loss, names, program, gradients, f"{text}\n{source}")


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


def _differences(loss: Any, names: list[str], program: Program, gradients: Any, told: str) -> None:
    """Hold the gradients against differences along random directions."""
    rng = np.random.default_rng(len(program.text))
    number = [spec.name for spec in program.args]

    def moved(directions: list[np.ndarray], step: float) -> float:
        arguments = given(program)
        for name, direction in zip(names, directions, strict=True):
            arguments[number.index(name)] += step * direction
        return float(loss(*arguments))

    rough = 0
    for _ in range(3):
        directions = [np.asarray(rng.standard_normal(np.shape(g))) for g in gradients]
        products = [g * d for g, d in zip(gradients, directions, strict=True)]
        along = float(sum(p.sum() for p in products))
        at = {n: moved(directions, n * STEP) for n in (-4, -2, -1, 0, 1, 2, 4)}
        centered = {n: (at[n] - at[-n]) / (2 * n * STEP) for n in (1, 2, 4)}
        best, other = ((4 * centered[n] - centered[2 * n]) / 3 for n in (1, 2))
        sides = (at[1] - at[0]) / STEP, (at[0] - at[-1]) / STEP
        scale = max(1.0, abs(best))
        spread = abs(best - other)
        if not spread <= RTOL * scale or not abs(sides[0] - sides[1]) <= 1e-2 * scale:
            rough += 1
            continue
        allowed = RTOL * scale + 20 * spread + 1e-9 * float(sum(np.abs(p).sum() for p in products))
        if not abs(along - best) <= allowed:
            why = f"{along} along a direction, not {best} +- {spread:.1g} in {names}"
            raise Ended("derivative", f"{why}\n{told}", True)
    if rough == 3:
        raise Ended("rough")
