"""Assignments as source text in the language: index notation, loops and tests of Python.

A range that follows from a plain use of an index letter is not written; any other is a guard, or
the binder of a reduction. What the text checks anyway is left out.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from types import MappingProxyType

from ...base.dataclass import dataclass
from ...lowering.adjoint.kept import index_symbols
from ...lowering.ir import dtypes
from ...lowering.ir.assignments import (
    Alloc,
    Assign,
    Block,
    Branch,
    Break,
    Check,
    Continue,
    For,
    Let,
    Permute,
    Print,
    Procedure,
    Statement,
    While,
)
from ...lowering.ir.dtypes import DType
from ...lowering.ir.expressions import (
    Apply,
    Cast,
    Const,
    Domain,
    Dynamic,
    Expr,
    Index,
    Read,
    Select,
    rebuild,
    walk,
)
from ...lowering.ir.indexing import Affine, Range, Symbol, minimum, var
from ...lowering.ir.indexing import substitute as in_index
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS, PAIR_OPS, neutral_of
from ...lowering.ir.rewrite import Rewrite, rewrite, substitute_expr
from ...lowering.ir.text import INFIX, Scope, element_text, expr_text, index_text, reduction_name
from ...lowering.ir.walk import direct_reads, direct_writes, statements

_INDENT = "    "
_RESERVED = frozenset({
    *vars(builtins), *OPS, *PAIR_OPS, *keyword.kwlist, "mean", "prod", "np", "where",
})  # fmt: skip
"""What no array may be called: words of the language."""
_NUMPY = {
    "fmax": "np.fmax", "fmin": "np.fmin", "isnan": "np.isnan",
    "isinf": "np.isinf", "isfinite": "np.isfinite", "signbit": "np.signbit", "hypot": "np.hypot",
    "copysign": "np.copysign", "logaddexp": "np.logaddexp", "heaviside": "np.heaviside",
    "arctan2": "np.arctan2", "cbrt": "np.cbrt", "sign": "np.sign", "fmod": "np.fmod",
    "trunc": "np.trunc", "rint": "np.rint", "recip": "np.reciprocal",
}  # fmt: skip
_CHECKED = frozenset(("CD0301", "CD0302", "CD0407", "CD0445", "CD0461", "CD0464", "CD0601"))
"""The codes of checks that the text makes anyway: of sizes, positions and Python's numbers."""
_UPDATES = {"or": "|", "and": "&"}


def source_text(
    procedure: Procedure,
    name: str,
    results: Sequence[Node],
    spelled: Mapping[int, str] = MappingProxyType({}),
    parameters: Sequence[str] | None = None,
) -> str:
    """Return the text of a function that computes what a procedure does, and returns `results`.

    `spelled` is what arrays are called, by their ids, and `parameters` what the function takes
    where that is not its arrays. It prints nothing. Precondition: no `Reduce`, and no jumps.
    """
    text = _text_of(procedure, spelled, parameters or ())
    lines = [*text.declarations(), *text.body(procedure.body, 1)]
    names = parameters or [text.scope.node(p.node) for p in procedure.parameters]
    if results:
        lines.append(f"{_INDENT}return {', '.join(map(text.scope.node, results))}")
    return "\n".join((f"def {name}({', '.join(names)}):", *lines, ""))


def _text_of(procedure: Procedure, spelled: Mapping[int, str], parameters: Sequence[str]) -> _Text:
    """Return the writer of a procedure, with a name for all that has one in the whole function."""
    scope = Scope(nodes=dict(spelled))
    for number, word in enumerate((*sorted(_RESERVED), *parameters)):
        scope.symbols[Symbol(word, -(10**6) - number)] = word
    for parameter in procedure.parameters:
        name = scope.node(parameter.node)
        for axis, extent in enumerate(parameter.node.shape):
            if extent.symbol is not None:
                scope.symbols.setdefault(extent.symbol, f"{name}.shape[{axis}]")
    for node in (*procedure.locals, *procedure.results):
        scope.node(replace(node, label=re.sub(r"\W", "_", node.label)))
    inside = statements(procedure.body)
    scalars = {p.node.id for p in procedure.parameters if not p.node.rank and not p.written}
    given: set[Symbol] = set()
    for stmt in inside:
        match stmt:
            case Let(symbol, Read(node, ())) if node.id in scalars:
                scope.symbols[symbol] = scope.node(node)
                given.add(symbol)
            case Let(symbol) | For(symbol):
                scope.symbol(symbol)
            case _:
                pass
    allocated = frozenset(stmt.node.id for stmt in inside if isinstance(stmt, Alloc))
    return _Text(procedure, scope, allocated, frozenset(given))


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of one procedure."""

    procedure: Procedure
    scope: Scope
    allocated: frozenset[int]
    """The ids of the arrays of run-time shape."""
    given: frozenset[Symbol]
    """The symbols that are integer arguments."""

    def declarations(self) -> Iterator[str]:
        """Yield the lines that create locals and results which no first assignment creates."""
        p = self.procedure
        first: dict[int, Statement] = {}
        for stmt in p.body:
            nested = statements((stmt,))
            touched = [n for s in nested for n in (*direct_writes(s), *direct_reads(s))]
            touched += [s.node for s in nested if isinstance(s, Alloc)]
            for node in touched:
                first.setdefault(node.id, stmt)
        for node in (*p.locals, *p.results):
            use = first.get(node.id)
            if node.id in self.allocated or use is None and node not in p.results:
                continue
            if not (isinstance(use, Assign) and use.target.node == node and _creates(use)):
                yield _INDENT + self.creation(node)

    def creation(self, node: Node) -> str:
        """Return the statement that creates an array of zeros, or a number."""
        name = self.scope.node(node)
        if not node.rank:
            return f"{name} = {_zero(node.dtype)}"
        sizes = [index_text(extent, self.scope) for extent in node.shape]
        shape = sizes[0] if len(sizes) == 1 else f"({', '.join(sizes)})"
        element = "" if node.dtype is dtypes.float64 else f", {node.dtype.short}"
        return f"{name} = np.zeros({shape}{element})"

    def body(self, body: Iterable[Statement], depth: int) -> list[str]:
        """Return the lines of a body."""
        lines = [line for stmt in body for line in self.statement(stmt, depth)]
        return lines or [_INDENT * depth + "pass"]

    def statement(self, stmt: Statement, depth: int) -> list[str]:
        """Return the lines of a statement."""
        indent = _INDENT * depth
        match stmt:
            case Assign():
                return [indent + line for line in self.assign(stmt)]
            case For(symbol, lo, hi, step, body):
                ends = [index_text(lo, self.scope), index_text(hi, self.scope)]
                ends = ends[1:] if ends[0] == "0" and step == 1 else ends
                ends += [str(step)] if step != 1 else []
                head = f"for {self.scope.symbol(symbol)} in range({', '.join(ends)}):"
                return [indent + head, *self.body(body, depth + 1)]
            case While(prelude, test, body):
                if prelude:
                    stop = (
                        [
                            f"{indent}{_INDENT}if not ({self.expr(test)}):",
                            f"{indent}{_INDENT * 2}break",
                        ]
                        if test != Const(True, dtypes.bool_)
                        else []
                    )
                    inside = [line for s in prelude for line in self.statement(s, depth + 1)]
                    return [f"{indent}while True:", *inside, *stop, *self.body(body, depth + 1)]
                return [f"{indent}while {self.expr(test)}:", *self.body(body, depth + 1)]
            case Branch(test, then, orelse):
                lines = [f"{indent}if {self.expr(test)}:", *self.body(then, depth + 1)]
                return (
                    [*lines, f"{indent}else:", *self.body(orelse, depth + 1)] if orelse else lines
                )
            case Block(comment, body):
                return [f"{indent}with comment({comment!r}):", *self.body(body, depth + 1)]
            case Let(symbol, value):
                if symbol in self.given:
                    return []
                return [f"{indent}{self.scope.symbol(symbol)} = {self.expr(value)}"]
            case Alloc(node):
                return [indent + self.creation(node)]
            case Permute(nodes, sources):
                left, right = (", ".join(map(self.scope.node, part)) for part in (nodes, sources))
                return [f"{indent}{left} = {right}"]
            case Check():
                return [indent + line for line in self.check(stmt)]
            case Print():
                return []
            case Break() | Continue():
                return [indent + type(stmt).__name__.lower()]

    def check(self, stmt: Check) -> list[str]:
        """Return the lines of a check, none for one that the text makes anyway."""
        fault, inner = stmt.fault, replace(self, scope=self.scope.inner())
        if fault.code in _CHECKED:
            return []
        binders = ", ".join(inner.binder(r, set()) for r in stmt.over.ranges)
        where, test = stmt.over.where, stmt.test
        holds = inner.expr(test if where is None else Select(where, test, Const(True, test.dtype)))
        known = f"all[{binders}]({holds})" if binders else f"({holds})"
        name = fault.kind.removeprefix("Cd")
        name = name if hasattr(builtins, name) else "ValueError"
        message = re.sub(r"\{\d+\}", "...", fault.message).removeprefix(f"{name}: ")
        return [f"if not {known}:", f"{_INDENT}raise {name}({message!r})"]

    def expr(self, expr: Expr) -> str:
        """Return an expression as text."""
        return _expr(expr, self.scope)

    def assign(self, stmt: Assign) -> list[str]:
        """Return the lines of an assignment; those of argmax and the like have two."""
        stmt = _with_plain_letters(_with_letters_of_sums(stmt))
        scope = self.scope.inner()
        inner = replace(self, scope=scope)
        bare = _free_letters_are_plain(stmt)
        guards = [
            test
            for r in stmt.free.ranges
            if r.symbol not in bare
            for test in _range_tests(r, scope)
        ]
        if stmt.free.where is not None:
            guards.append(inner.expr(stmt.free.where))
        if stmt.pair is None:
            written = [inner.update(stmt, bare)]
        else:
            position = replace(stmt, pair=None, target=stmt.pair.access)
            best = "max" if stmt.op is not None and stmt.op.name == "argmax" else "min"
            written = [inner.update(position, bare, f"arg{best}")]
            written.append(inner.update(replace(stmt, pair=None), bare, best))
        if not guards:
            return written
        guard = f"if {' and '.join(guards)}:"
        return [line for one in written for line in (guard, _INDENT + one)]

    def update(self, stmt: Assign, bare: set[Symbol], reduction: str = "") -> str:
        """Return an assignment without its guards."""
        left = element_text(stmt.target.node, _spelled(stmt.target.index), self.scope)
        if not stmt.target.index and any(
            p.node == stmt.target.node for p in self.procedure.parameters
        ):
            left += "[...]"  # without it the name would be bound again
        value, ranges = stmt.value, stmt.reduced.ranges
        binders = [self.binder(r, bare) for r in ranges]
        where = stmt.reduced.where
        if reduction or stmt.op is not None and stmt.initialize:
            assert stmt.op is not None
            name = reduction or reduction_name(stmt.op)
            inside = self.expr(_conditional(value, where, stmt))
            if not binders and not reduction:  # the neutral element turns -0.0 into 0.0
                start = f"{_zero(value.dtype)} + " if stmt.op.name == "add" else ""
                return f"{left} = {start}({inside})"
            return f"{left} = {name}[{', '.join(binders)}]({inside})"
        if stmt.op is None:
            return f"{left} = {self.expr(value)}"
        if stmt.op.name not in INFIX:
            old = Read(stmt.target.node, stmt.target.index)
            return self.update(
                replace(stmt, op=None, value=Apply(stmt.op, (old, value), old.dtype)), bare
            )
        sign = _UPDATES.get(stmt.op.name) or INFIX[stmt.op.name][0]
        if not ranges:
            return f"{left} {sign}= {self.expr(_conditional(value, where, stmt))}"
        if where is None and stmt.target.index and all(r.symbol in bare for r in ranges):
            return f"{left} {sign}= {self.expr(value)}"
        name = "sum" if stmt.op.name == "sub" else reduction_name(stmt.op)
        inside = self.expr(_conditional(value, where, stmt))
        return f"{left} {sign}= {name}[{', '.join(binders)}]({inside})"

    def binder(self, r: Range, bare: set[Symbol]) -> str:
        """Return the binder of a letter in a reduction."""
        name = self.scope.symbol(r.symbol)
        if r.symbol in bare:
            return name
        lo, hi = index_text(r.lo, self.scope), index_text(r.hi, self.scope)
        return f"{name} in range({hi})" if lo == "0" else f"{name} in range({lo}, {hi})"


def _conditional(value: Expr, where: Expr | None, stmt: Assign) -> Expr:
    """Return a term that is neutral where a test does not hold."""
    if where is None:
        return value
    op, dtype = stmt.op, value.dtype
    if op is None:
        return Select(where, value, Const(0, dtype))
    op = {"argmax": OPS["max"], "argmin": OPS["min"]}.get(op.name, op)
    return Select(where, value, Const(neutral_of(op, dtype.kind, dtype.bits), dtype))


def _range_tests(r: Range, scope: Scope) -> Iterator[str]:
    name = scope.symbol(r.symbol)
    if r.lo.constant != 0:
        yield f"{name} >= {index_text(r.lo, scope)}"
    yield f"{name} < {index_text(r.hi, scope)}"


def _with_letters_of_sums(stmt: Assign) -> Assign:
    """Return an update that sums over the letters that its target does not have."""
    if stmt.op is None or stmt.initialize:
        return stmt
    used = {s for at in stmt.target.index for s in index_symbols(at)}
    moved = tuple(r for r in stmt.free.ranges if r.symbol not in used)
    if not moved:
        return stmt
    free = tuple(r for r in stmt.free.ranges if r.symbol in used)
    tests = [t for t in (stmt.free.where, stmt.reduced.where) if t is not None]
    where = None
    for test in tests:
        where = test if where is None else Apply(OPS["and"], (where, test), dtypes.bool_)
    return replace(stmt, free=Domain(free), reduced=Domain((*moved, *stmt.reduced.ranges), where))


def _creates(stmt: Assign) -> bool:
    """Whether an assignment sets all elements of its target, by letters alone."""
    node, free = stmt.target.node, {r.symbol: r for r in stmt.free.ranges}
    if not (stmt.op is None or stmt.initialize) or stmt.free.where is not None:
        return False
    if stmt.pair is not None:
        return False
    symbols = [at.symbol if isinstance(at, Affine) else None for at in stmt.target.index]
    if len(set(symbols)) < len(symbols) or len(symbols) != len(free):
        return False
    return all(
        s is not None and s in free and free[s].lo.constant == 0 and free[s].hi == extent
        for s, extent in zip(symbols, node.shape, strict=True)
    ) and bool(_free_letters_are_plain(stmt, of_values=True) >= set(free))


def _plain_sizes(stmt: Assign, of_values: bool = False) -> dict[Symbol, set[Affine]]:
    """Return the sizes of the axes that each letter subscripts alone."""
    accesses = [] if of_values else [(stmt.target.node, stmt.target.index)]
    if stmt.pair is not None and not of_values:
        accesses.append((stmt.pair.access.node, stmt.pair.access.index))
    exprs = [e for e in (stmt.value, stmt.free.where, stmt.reduced.where) if e is not None]
    accesses += [(p.node, p.index) for e in exprs for p in walk(e) if isinstance(p, Read)]
    found: dict[Symbol, set[Affine]] = {}
    for node, index in accesses:
        for at, extent in zip(index, node.shape, strict=True):
            if isinstance(at, Affine) and at.symbol is not None:
                found.setdefault(at.symbol, set()).add(extent)
    return found


def _free_letters_are_plain(stmt: Assign, of_values: bool = False) -> set[Symbol]:
    """Return the letters whose ranges follow from their plain uses."""
    sizes = _plain_sizes(stmt, of_values)
    return {
        r.symbol
        for r in (*stmt.free.ranges, *stmt.reduced.ranges)
        if r.lo.constant == 0 and sizes.get(r.symbol) == {r.hi}
    }


def _with_plain_letters(stmt: Assign) -> Assign:
    """Return an assignment whose letters subscript alone only axes of one size each: others are
    shifted, or bounded by the size where that leaves a free letter no axis, or moves positions."""
    for domain in ("free", "reduced"):
        for r in getattr(stmt, domain).ranges:
            is_position = stmt.pair is not None and r.symbol in stmt.pair.position.symbols()
            for shift in count():
                changed = _shifted(stmt, r.symbol, shift)
                sizes = _plain_sizes(changed).get(r.symbol, ())
                if len(sizes) <= 1:
                    break
            is_lost = not sizes and domain == "free"
            stmt = _bounded(stmt, r) if shift and (is_lost or is_position) else changed
    return stmt


def _bounded(stmt: Assign, r: Range) -> Assign:
    """Return an assignment in which a letter subscripts alone axes of one size: the target's, or
    that of its range."""
    target = [
        extent for at, extent in zip(stmt.target.index, stmt.target.node.shape, strict=True)
        if at == var(r.symbol)
    ]  # fmt: skip
    sizes = _plain_sizes(stmt)[r.symbol]
    kept = target[0] if target else r.hi if r.hi in sizes else min(sizes, key=repr)

    def bounded(node: Node, index: tuple[Index, ...]) -> tuple[Index, ...]:
        return tuple(
            minimum(at, extent - 1) if at == var(r.symbol) and extent != kept else at
            for at, extent in zip(index, node.shape, strict=True)
        )

    def on_expr(expr: Expr) -> Expr:
        expr = rebuild(expr, on_expr, lambda index: index)
        return (
            replace(expr, index=bounded(expr.node, expr.index)) if isinstance(expr, Read) else expr
        )

    (new,) = rewrite((stmt,), Rewrite(on_expr))
    return replace(
        new, target=replace(new.target, index=bounded(new.target.node, new.target.index))
    )


def _shifted(stmt: Assign, symbol: Symbol, shift: int) -> Assign:
    """Return an assignment in which a letter runs through numbers that are `shift` higher."""
    if not shift:
        return stmt
    values = {symbol: var(symbol) - shift}
    by = Rewrite(lambda e: substitute_expr(e, values), lambda index: in_index(index, values))
    (new,) = rewrite((stmt,), by)  # of a symbol that the statement binds itself

    def moved(domain: Domain, given: Domain) -> Domain:
        return Domain(
            tuple(
                Range(r.symbol, r.lo + shift, r.hi + shift) if r.symbol == symbol
                else Range(r.symbol, *(_moved(e, symbol, shift) for e in (r.lo, r.hi)))
                for r in given.ranges
            ),
            domain.where,
        )  # fmt: skip

    return replace(new, free=moved(new.free, stmt.free), reduced=moved(new.reduced, stmt.reduced))


def _moved(index: Affine, symbol: Symbol, shift: int) -> Affine:
    return in_index(index, {symbol: var(symbol) - shift})


def _zero(dtype: DType) -> str:
    match dtype.kind:
        case "b":
            return "False"
        case "f" if dtype is dtypes.float64:
            return "0.0"
        case _:
            return f"{dtype.short}(0)"


def _spelled(index: tuple[Index, ...]) -> tuple[Index, ...]:
    return tuple(Dynamic(_worded(at.value)) if isinstance(at, Dynamic) else at for at in index)


def _expr(expr: Expr, scope: Scope) -> str:
    return expr_text(_worded(expr), scope)


def _worded(expr: Expr) -> Expr:
    """Return an expression whose operations print as words of the language."""
    expr = rebuild(expr, _worded, lambda index: index)
    match expr:
        case Select(test, yes, Const(False)):
            return Apply(OPS["and"], (test, yes), dtypes.bool_)
        case Cast(value, dtype) if value.dtype == dtype:
            return value
        case Apply(op, args, dtype) if op.name in _NUMPY:
            return Apply(replace(op, name=_NUMPY[op.name]), args, dtype)
        case _:
            return expr
