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
from types import MappingProxyType

from ...base.dataclass import dataclass
from ...lowering.adjoint.kept import index_symbols
from ...lowering.adjoint.rules import NotDifferentiable
from ...lowering.adjoint.terms import all_of
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
from ...lowering.ir.expressions import Apply, Const, Domain, Expr, Read, Select, reads
from ...lowering.ir.indexing import Affine, Symbol, const, var
from ...lowering.ir.node import Node
from ...lowering.ir.ops import OPS, PAIR_OPS, neutral_of
from ...lowering.ir.rewrite import Rewrite, rewrite, substitute
from ...lowering.ir.text import INFIX, Scope, reduction_name
from ...lowering.ir.walk import direct_reads, direct_writes, free_symbols, statements, uses
from .exchanges import with_copies_under_tests
from .letters import (
    compared,
    ends,
    is_empty,
    letters_with_ranges,
    position_in_text,
    position_of,
    range_tests,
    with_known_ranges,
    with_letters_of_their_own,
    with_plain_letters,
)
from .spelling import element_text, folded, index_text, value_text

INDENT = "    "
RESERVED = frozenset({
    *vars(builtins), *OPS, *PAIR_OPS, *keyword.kwlist, *dtypes.BY_SHORT, "bool_", "clamp", "clip",
    "comment", "inf", "maximum", "mean", "memory", "minimum", "nan", "np", "of_rank", "ordinal",
    "pad", "pi", "prod", "rank", "square", "where", "wrap",
})  # fmt: skip
"""What no array may be called: words of the language."""
_CHECKED = frozenset(("CD0301", "CD0302", "CD0407", "CD0445", "CD0461", "CD0464", "CD0601"))
"""The codes of checks that the text makes anyway: of sizes, positions and Python's numbers."""
_UPDATES = {"or": "|", "and": "&"}


def source_text(
    procedure: Procedure,
    name: str,
    results: Sequence[Node],
    spelled: Mapping[int, str] = MappingProxyType({}),
    taken: Sequence[str] = (),
    head: str = "",
) -> str:
    """Return the text of a function that computes what a procedure does, and returns `results`.

    `spelled` is what arrays are called, by their ids, `taken` the names that nothing else may have,
    and `head` the parameters where these are not the arrays. It prints nothing.
    Precondition: no `Reduce`. Raises NotDifferentiable for what the language has no text for.
    """
    body = rewrite(procedure.body, Rewrite(expr=folded))
    procedure = with_copies_under_tests(replace(procedure, body=body))
    text = _text_of(procedure, spelled, taken)
    lines = [*text.declarations(), *text.body(procedure.body, 1)]
    names = [text.scope.node(p.node).partition("[")[0] for p in procedure.parameters]
    if results:
        lines.append(f"{INDENT}return {', '.join(map(text.scope.node, results))}")
    return "\n".join((f"def {name}({head or ', '.join(names)}):", *lines, ""))


def _text_of(procedure: Procedure, spelled: Mapping[int, str], taken: Sequence[str]) -> _Text:
    """Return the writer of a procedure, with a name for all that has one in the whole function."""
    scope = Scope(nodes=dict(spelled))
    for number, word in enumerate((*sorted(RESERVED), *taken)):
        scope.symbols[Symbol(word, -(10**6) - number)] = word
    for parameter in procedure.parameters:
        name = _named(parameter.node, scope)
        for axis, extent in enumerate(parameter.node.shape):
            if extent.symbol is not None:
                scope.symbols.setdefault(extent.symbol, f"{name}.shape[{axis}]")
    for node in (*procedure.locals, *procedure.results):
        _named(node, scope)
    inside = statements(procedure.body)
    scalars = {p.node.id for p in procedure.parameters if not p.node.rank and not p.written}
    given: set[Symbol] = set()
    variables = {stmt.symbol for stmt in inside if isinstance(stmt, For | Let)}
    for stmt in inside:
        match stmt:
            case Let(symbol, Read(node, ())) if node.id in scalars:
                scope.symbols[symbol] = scope.node(node)
                given.add(symbol)
            case Let(symbol) | For(symbol):
                scope.symbol(symbol)
            case _:
                pass
    for p in procedure.parameters:
        if p.written and not p.node.rank:  # an array, whose name alone would be another one for it
            name = scope.nodes[p.node.id]
            scope.symbols[Symbol(name, -2 * 10**6 - p.node.id)] = name
            scope.nodes[p.node.id] = f"{name}[()]"
    allocated = frozenset(stmt.node.id for stmt in inside if isinstance(stmt, Alloc))
    numbers = frozenset(stmt.symbol for stmt in inside if isinstance(stmt, Let)) - given
    return _Text(procedure, scope, allocated, frozenset(given), frozenset(variables), numbers)


def _one_after_the_other(body: Iterable[Statement]) -> Iterator[Statement]:
    """Yield the statements that run once each, in order; a comment around some is none itself."""
    for stmt in body:
        yield from _one_after_the_other(stmt.body) if isinstance(stmt, Block) else (stmt,)


def _named(node: Node, scope: Scope) -> str:
    """Return the name of an array, an identifier whatever its label is."""
    return scope.node(replace(node, label=re.sub(r"\W", "_", node.label)))


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of one procedure."""

    procedure: Procedure
    scope: Scope
    allocated: frozenset[int]
    """The ids of the arrays of run-time shape."""
    given: frozenset[Symbol]
    """The symbols that are integer arguments."""
    variables: frozenset[Symbol]
    """The symbols of loops and of integers."""
    numbers: frozenset[Symbol]
    """Those of integers that are computed."""

    def declarations(self) -> Iterator[str]:
        """Yield the lines that create locals and results which no first assignment creates."""
        p = self.procedure
        first: dict[int, Statement] = {}
        for stmt in _one_after_the_other(p.body):
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
                yield INDENT + self.creation(node)

    def creation(self, node: Node) -> str:
        """Return the statement that creates an array of zeros, or a number."""
        name = self.scope.node(node)
        if not node.rank:
            return f"{name} = {_zero(node.dtype)}"
        extents = [const(0) if (e.constant or 0) < 0 else e for e in node.shape]
        sizes = [index_text(extent, self.scope) for extent in extents]
        shape = sizes[0] if len(sizes) == 1 else f"({', '.join(sizes)})"
        element = "" if node.dtype is dtypes.float64 else f", {node.dtype.short}"
        return f"{name} = np.zeros({shape}{element})"

    def body(self, body: Iterable[Statement], depth: int) -> list[str]:
        """Return the lines of a body; tests of letters alone are written once for neighbours."""
        lines: list[str] = []
        guard = ""
        for stmt in body:
            new = self.statement(stmt, depth)
            is_guarded = isinstance(stmt, Assign) and _is_of_letters(stmt) and len(new) > 1
            lines += new[1:] if is_guarded and new[0] == guard else new
            guard = new[0] if is_guarded else "" if new else guard
        return lines or [INDENT * depth + "pass"]

    def statement(self, stmt: Statement, depth: int) -> list[str]:
        """Return the lines of a statement."""
        indent = INDENT * depth
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
                    stop = [
                        f"{indent}{INDENT}if not ({self.expr(test)}):",
                        f"{indent}{INDENT * 2}break",
                    ] * (test != Const(True, dtypes.bool_))
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
        binders, where = inner.binders(stmt.over, set())
        test = stmt.test
        holds = inner.expr(test if where is None else Select(where, test, Const(True, test.dtype)))
        known = f"all[{', '.join(binders)}]({holds})" if binders else f"({holds})"
        name = fault.kind.removeprefix("Cd")
        name = name if hasattr(builtins, name) else "ValueError"
        message = re.sub(r"\{\d+\}", "...", fault.message).removeprefix(f"{name}: ")
        return [f"if not {known}:", f"{INDENT}raise {name}({message!r})"]

    def expr(self, expr: Expr) -> str:
        """Return an expression as text."""
        return value_text(expr, self.scope)

    def with_own_letters(self, stmt: Assign) -> Assign:
        """Return an assignment whose letters are no variables."""
        return with_letters_of_their_own(stmt, self.variables)

    def assign(self, stmt: Assign) -> list[str]:
        """Return the lines of an assignment; those of argmax and the like have two."""
        if is_empty(stmt):
            return []
        stmt = with_plain_letters(_with_letters_on_the_left(self.with_own_letters(stmt)))
        stmt = with_known_ranges(stmt, self.numbers)
        bare = letters_with_ranges(stmt)
        inner = self.with_sizes(stmt, bare)
        spans = [r for r in stmt.free.ranges if r.symbol not in bare]
        guards = [test for r in spans for test in range_tests(r)]
        guards += [stmt.free.where] if stmt.free.where is not None else []
        lines = [inner.update(stmt, bare)] if stmt.pair is None else inner.extreme(stmt, bare)
        guard = all_of(guards)
        if guard is None:
            return lines
        head = f"if {inner.expr(guard)}:"
        if _is_of_letters(stmt):
            return [head, *(INDENT + line for line in lines)]
        return [text for line in lines for text in (head, INDENT + line)]

    def with_sizes(self, stmt: Assign, bare: set[Symbol]) -> _Text:
        """Return the writer of a statement, which spells the ends of ranges as sizes of its arrays:
        from numbers that only a run knows letters get no ranges."""
        ranges = (*stmt.free.ranges, *stmt.reduced.ranges)
        ends_of = {s for r in ranges if r.symbol not in bare for s in r.hi.symbols()}
        scope = self.scope.inner()
        for node in (*direct_writes(stmt), *direct_reads(stmt)):
            for axis, extent in enumerate(node.shape if node.id in self.allocated else ()):
                if extent.symbol in ends_of & self.variables:
                    scope.symbols[extent.symbol] = f"{scope.node(node)}.shape[{axis}]"
        return replace(self, scope=scope)

    def extreme(self, stmt: Assign, bare: set[Symbol]) -> list[str]:
        """Return the lines that set a position and then the value there, without guards."""
        assert stmt.pair is not None and stmt.op is not None
        best = stmt.op.name.removeprefix("arg")
        position = replace(stmt, pair=None, target=stmt.pair.access)
        ranges, letters = stmt.reduced.ranges, {r.symbol for r in stmt.reduced.ranges}
        left = element_text(position.target.node, position.target.index, self.scope)
        offset = stmt.pair.position - position_in_text(ranges)
        first = [self.update(position, bare, stmt.op.name)]
        if not ranges:
            first = [f"{left} = {index_text(offset, self.scope)}"]
        elif offset.symbols() & letters:
            number = Symbol(left, -1)
            named = replace(self.scope, symbols={**self.scope.symbols, number: left})
            there = position_of(var(number), stmt.pair.position, ranges)
            first.append(f"{left} = {index_text(there, named)}")
        elif offset.constant != 0:
            sign, size = ("-", -offset) if (offset.constant or 0) < 0 else ("+", offset)
            first[0] += f" {sign} {index_text(size, self.scope)}"
        return [*first, self.update(replace(stmt, pair=None), bare, best)]

    def update(self, stmt: Assign, bare: set[Symbol], reduction: str = "") -> str:
        """Return an assignment without its guards."""
        left = element_text(stmt.target.node, stmt.target.index, self.scope)
        value, ranges = stmt.value, stmt.reduced.ranges
        binders, where = self.binders(stmt.reduced, bare)
        if reduction or stmt.op is not None and stmt.initialize:
            assert stmt.op is not None
            if not reduction and any((r.hi - r.lo).constant == 0 for r in ranges):
                binders, where = [], Const(False, dtypes.bool_)  # an element of an empty axis
            name = reduction or reduction_name(stmt.op)
            inside = self.expr(_conditional(value, where, stmt))
            return (
                f"{left} = {name}[{', '.join(binders)}]({inside})"
                if binders
                else (f"{left} = {inside}")
            )
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
        inside = self.expr(_conditional(value, where, stmt))
        if stmt.target.index and all(r.symbol in bare for r in ranges):
            return f"{left} {sign}= {inside}"  # `sum` would add up all terms before
        name = "sum" if stmt.op.name == "sub" else reduction_name(stmt.op)
        return f"{left} {sign}= {name}[{', '.join(binders)}]({inside})"

    def binders(self, domain: Domain, bare: set[Symbol]) -> tuple[list[str], Expr | None]:
        """Return the binders of a reduction's letters, and the test for what these do not tell."""
        texts: list[str] = []
        where: Expr | None = domain.where
        letters = {r.symbol for r in domain.ranges}
        for r in reversed(domain.ranges):
            name = self.scope.symbol(r.symbol)
            if r.symbol in bare:
                texts.insert(0, name)
                continue
            (lo, *also_lo), (hi, *also_hi) = ends(r, letters)
            first, last = index_text(lo, self.scope), index_text(hi, self.scope)
            among = f"range({last})" if first == "0" else f"range({first}, {last})"
            texts.insert(0, f"{name} in {among}")
            tests = [compared("ge", r.symbol, end) for end in also_lo]
            tests += [compared("lt", r.symbol, end) for end in also_hi]
            where = all_of([*tests, where] if where is not None else tests)
        return texts, where


def _conditional(value: Expr, where: Expr | None, stmt: Assign) -> Expr:
    """Return a term that is neutral where a test does not hold."""
    if where is None:
        return value
    op, dtype = stmt.op, value.dtype
    if isinstance(where, Const) and not where.value and op is not None and op.name in OPS:
        return Const(neutral_of(op, dtype.kind, dtype.bits), dtype)
    if op is None:
        return Select(where, value, Const(0, dtype))
    op = {"argmax": OPS["max"], "argmin": OPS["min"]}.get(op.name, op)
    return Select(where, value, Const(neutral_of(op, dtype.kind, dtype.bits), dtype))


def _is_of_letters(stmt: Assign) -> bool:
    """Whether the guard of an assignment, if it has one, is of letters and constants alone: of
    several statements it is evaluated before the first, and its letters have no other ranges."""
    letters = {r.symbol for r in stmt.free.ranges}
    ends_of = {s for r in stmt.free.ranges for end in (r.lo, r.hi) for s in end.symbols()}
    where = stmt.free.where
    return ends_of <= letters and (
        where is None or not reads(where) and free_symbols(where) <= letters
    )


def _with_letters_on_the_left(stmt: Assign) -> Assign:
    """Return an assignment whose free letters are on its left: over others updates are summed, and
    what is assigned at all of their points is assigned once."""
    used = {s for at in stmt.target.index for s in index_symbols(at)}
    moved = tuple(r for r in stmt.free.ranges if r.symbol not in used)
    if not moved:
        return stmt
    single = {r.symbol: r.lo for r in moved if (r.hi - r.lo).constant == 1}
    if single:
        ranges = tuple(r for r in stmt.free.ranges if r.symbol not in single)
        stmt = replace(stmt, free=replace(stmt.free, ranges=ranges))
        return _with_letters_on_the_left(*substitute((stmt,), single))
    free = tuple(r for r in stmt.free.ranges if r.symbol in used)
    if stmt.op is not None and not stmt.initialize:
        tests = [t for t in (stmt.free.where, stmt.reduced.where) if t is not None]
        reduced = Domain((*moved, *stmt.reduced.ranges), all_of(tests))
        return replace(stmt, free=Domain(free), reduced=reduced)
    once = replace(stmt, free=Domain(free, stmt.free.where))
    letters = {r.symbol for r in moved}
    sizes = [(r.hi - r.lo).constant or 0 for r in moved]
    if min(sizes) < 1 or letters & uses(once):
        raise NotDifferentiable("an element that is assigned more than once", stmt.span)
    return once


def _creates(stmt: Assign) -> bool:
    """Whether an assignment sets all elements of its target, by letters alone."""
    node, free = stmt.target.node, {r.symbol: r for r in stmt.free.ranges}
    if not (stmt.op is None or stmt.initialize) or stmt.free.where is not None or is_empty(stmt):
        return False
    if stmt.pair is not None:
        return False
    symbols = [at.symbol if isinstance(at, Affine) else None for at in stmt.target.index]
    if len(set(symbols)) < len(symbols) or len(symbols) != len(free):
        return False
    return all(
        s is not None and s in free and free[s].lo.constant == 0 and free[s].hi == extent
        for s, extent in zip(symbols, node.shape, strict=True)
    ) and bool(letters_with_ranges(stmt, of_values=True) >= set(free))


def _zero(dtype: DType) -> str:
    match dtype.kind:
        case "b":
            return "False"
        case "f" if dtype is dtypes.float64:
            return "0.0"
        case _:
            return f"{dtype.short}(0)"
