"""What index notation means, in plain Python: an oracle that shares nothing with the compiler.

`translated(text)` makes ordinary Python of a function: each index statement becomes a call that
goes over the points of its domain one by one, with NumPy scalars. The rules are those of the
language page; what this file does not know it refuses by `Unknown`.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .plain_expressions import REDUCTIONS, Letters, Unknown, evaluate, reduce_values, stored

LETTER = re.compile(r"[i-o][0-9_]*")
_OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<",
    ast.RShift: ">>",
}  # fmt: skip


MOST = 50_000
"""Points and terms that one statement goes over; what takes more is refused."""


def letters_of(node: ast.AST) -> list[str]:
    """Return the index letters in a piece of a program, in the order of the text."""
    found: list[str] | None = getattr(node, "letters", None)
    if found is None:
        names = [n for n in ast.walk(node) if isinstance(n, ast.Name) and LETTER.fullmatch(n.id)]
        names.sort(key=lambda n: (n.lineno, n.col_offset))
        found = list(dict.fromkeys(n.id for n in names))
        node.letters = found
    return found


@dataclass
class Translated:
    """A text for plain Python, and the statements that it calls by number."""

    text: str
    statements: list[IndexStatement]

    def names(self) -> dict[str, Any]:
        """Return what the text needs to find around it."""
        return {"_run": self.run, "_state": _state, "_visible": _visible}

    def run(self, number: int, state: Mapping[str, Any], *guards: Mapping[str, Any]) -> Any:
        """Run a statement on the local variables; return the array that it wrote."""
        return self.statements[number].run(state, guards)


def translated(text: str) -> Translated:
    """Return the plain Python of a text in both notations."""
    made = _translated(text)
    return Translated(made.text, [replace(one, ranges={}, work=0) for one in made.statements])


@functools.lru_cache(256)
def _translated(text: str) -> Translated:
    tree = ast.parse(text)
    made = Translated("", [])
    _Rewriter(made).visit(tree)
    made.text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return made


def _visible(around: Mapping[str, Any], inside: Mapping[str, Any]) -> dict[str, Any]:
    """Return local variables and the values around a function, which are neither functions."""
    kinds = np.ndarray | np.generic | int | float | tuple
    return {name: one for name, one in around.items() if isinstance(one, kinds)} | {**inside}


def _state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of local variables, arrays copied."""
    return {n: np.array(v) if isinstance(v, np.ndarray) else v for n, v in state.items()}


class _Rewriter(ast.NodeTransformer):
    """Replaces index statements and guards."""

    def __init__(self, made: Translated) -> None:
        self.made = made
        self.guards: list[tuple[ast.expr, bool, str]] = []

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        return self.statement(node, node.targets[0], None, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        return self.statement(node, node.target, _OPERATORS[type(node.op)], node.value)

    def statement(self, node: ast.stmt, target: ast.expr, op: str | None, value: ast.expr) -> Any:
        if not letters_of(node):
            return node
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
            raise Unknown("an index statement without a target")
        tests = [(test, positive) for test, positive, _ in self.guards]
        self.made.statements.append(IndexStatement(target, op, value, tests))
        states = "".join(f", {name}" for _, _, name in self.guards)
        name = target.value.id
        number, seen = len(self.made.statements) - 1, "_visible(globals(), locals())"
        call = f"{name} = _run({number}, {seen}{states})"
        return ast.parse(call).body[0]

    def visit_If(self, node: ast.If) -> Any:
        if not letters_of(node.test):
            self.generic_visit(node)
            return node
        name = f"_guard{len(self.made.statements)}_{len(self.guards)}"
        out: list[ast.stmt] = ast.parse(f"{name} = _state(_visible(globals(), locals()))").body
        for body, positive in ((node.body, True), (node.orelse, False)):
            self.guards.append((node.test, positive, name))
            for inner in body:
                made = self.visit(inner)
                out += made if isinstance(made, list) else [made]
            self.guards.pop()
        return out


@dataclass
class IndexStatement:
    """`target op= value` for each point of the ranges of its letters where the guards hold."""

    target: ast.Subscript
    op: str | None
    value: ast.expr
    guards: list[tuple[ast.expr, bool]]
    ranges: dict[str, range] = field(default_factory=dict)
    work: int = 0
    """Points and terms in all of its runs."""

    def run(self, state: Mapping[str, Any], guards: tuple[Mapping[str, Any], ...]) -> Any:
        """Run on local variables; return the array written. Raises Unknown, IndexError."""
        before = _state({n: v for n, v in state.items() if not n.startswith("_")})
        op, value = self._accumulator()
        self.ranges = dict(_pinned(self.whole(), before))
        free = letters_of(self.target)
        rest = [n for n in letters_of(value) if n not in free and n not in _bound(value, free)]
        if rest and op is None:
            raise Unknown(f"{rest} only on the right")
        points = list(self._points([*free, *rest], before, guards))
        values = [evaluate(value, before, point, self) for point in points]
        array = self._array(state, values, points)
        keep = array if op is None or not values else array.astype(_joined([*values, array[:1]]))
        for point, one in zip(points, values):
            place = self._place(before, point, array.shape)
            keep[place] = stored(keep[place], op, one, keep.dtype)
        array[...] = keep.astype(array.dtype)  # accumulated in the wider type, rounded once
        return array

    def whole(self) -> list[ast.AST]:
        """Return the parts that letters may stand in."""
        return [self.target, self.value, *(test for test, _ in self.guards)]

    def _accumulator(self) -> tuple[str | None, ast.expr]:
        """Return the operator and what is accumulated; also of `t[...] = max(t[...], e)`."""
        value = self.value
        if self.op is None and isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            if value.func.id in ("max", "min") and len(value.args) == 2:
                if ast.unparse(value.args[0]) == ast.unparse(self.target):
                    return value.func.id, value.args[1]
        return self.op, value

    def _points(
        self, letters: list[str], before: Mapping[str, Any], guards: tuple[Mapping[str, Any], ...]
    ) -> Iterator[Letters]:
        missing = [n for n in letters if n not in self.ranges]
        if missing:
            raise Unknown(f"no range for {missing}")
        for numbers in self._product([self.ranges[n] for n in letters]):
            point = dict(zip(letters, numbers))
            tests = zip(self.guards, guards)
            if all(bool(evaluate(t, s, point, self)) == positive for (t, positive), s in tests):
                yield point

    def _product(self, spans: list[range]) -> Iterator[tuple[int, ...]]:
        self.work += math.prod(map(len, spans))
        if self.work > MOST:
            raise Unknown("more points than are worth going over one by one")
        return itertools.product(*spans)

    def _subscripts(self) -> list[ast.expr]:
        index = self.target.slice
        return list(index.elts) if isinstance(index, ast.Tuple) else [index]

    def _place(
        self, before: Mapping[str, Any], point: Letters, shape: tuple[int, ...]
    ) -> tuple[int, ...]:
        place = tuple(int(evaluate(s, before, point, self)) for s in self._subscripts())
        if any(not 0 <= n < extent for n, extent in zip(place, shape)):
            raise IndexError(f"{place} in {shape}")
        return place

    def _array(self, state: Mapping[str, Any], values: list[Any], points: list[Letters]) -> Any:
        """Return the target, a new array where there is none of its rank."""
        name = ast.unparse(self.target.value)
        subscripts = self._subscripts()
        is_new = all(isinstance(s, ast.Name) for s in subscripts)
        if name in state and not (is_new and np.ndim(state[name]) != len(subscripts)):
            spans = {s.id: self.ranges[s.id] for s in subscripts if isinstance(s, ast.Name)
                     and s.id in self.ranges}  # fmt: skip
            sizes = [len(span) for span in spans.values()]
            if len(spans) == len(subscripts) and sizes != list(state[name].shape):
                raise Unknown("whether an array of another size takes its place")
            return state[name]
        if not values:
            raise Unknown("the type of nothing")
        dtype = _joined(values)
        if not is_new:
            raise Unknown("the size of a new array")
        sizes = [len(self.ranges[s.id]) for s in subscripts]
        return np.zeros(sizes, dtype)

    def reduce(self, name: str, expr: ast.expr, binders: list[ast.expr] | None,
               state: Mapping[str, Any], point: Letters) -> Any:  # fmt: skip
        """Return the value of a reduction at a point."""
        tests: list[ast.expr] = []
        ranges: dict[str, range] = {}
        if binders is None:
            inner = _bound(expr, list(point))
            names = [n for n in letters_of(expr) if n not in point and n not in inner]
        else:
            names = []
            for binder in binders:
                new = [n for n in letters_of(binder) if n not in point and n not in names]
                names += new
                match binder:
                    case ast.Compare(left=ast.Name(id=letter), ops=[ast.In()], comparators=[over]):
                        ranges[letter] = evaluate(over, state, point, self)
                    case ast.Compare():
                        tests.append(binder)
        spans = [ranges[n] if n in ranges else self.ranges[n] for n in names]
        found = []
        for numbers in self._product(spans):
            inside = {**point, **dict(zip(names, numbers))}
            if all(evaluate(test, state, inside, self) for test in tests):
                found.append((numbers, evaluate(expr, state, inside, self)))
        return reduce_values(name, found)


def _joined(values: list[Any]) -> np.dtype:
    """Return the type that values have together."""
    return np.result_type(*{getattr(v, "dtype", type(v)): v for v in values}.values())


def _bound(expr: ast.AST, free: list[str]) -> set[str]:
    """Return the letters that reductions inside of an expression bind."""
    found: set[str] = set()
    for node in ast.walk(expr):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[inner]) if name in REDUCTIONS:
                found |= {n for n in letters_of(inner) if n not in free}
            case ast.Call(func=ast.Subscript(value=ast.Name(id=name), slice=binders)):
                if name in REDUCTIONS:
                    parts = binders.elts if isinstance(binders, ast.Tuple) else [binders]
                    for part in parts:
                        inside = part.left if isinstance(part, ast.Compare) else part
                        found |= {n for n in letters_of(inside) if n not in free}
    return found


def _pinned(parts: list[ast.AST], state: Mapping[str, Any]) -> Iterator[tuple[str, range]]:
    """Yield the range of each letter that stands alone in a subscript of an array."""
    for part in parts:
        for node in ast.walk(part):
            if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
                continue
            array = state.get(node.value.id)
            if not isinstance(array, np.ndarray):
                continue
            index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            for extent, sub in zip(array.shape, index):
                if isinstance(sub, ast.Name) and LETTER.fullmatch(sub.id):
                    yield sub.id, range(extent)
