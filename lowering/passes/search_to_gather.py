"""Search loops as gathers: a loop that tests every index for one value accesses that index only.

A loop that acts only where `k` equals a number is run for that number only, guarded by the loop's
range: `for k: if k == idx: ...`, and sums over `k` of `table[k] if k == idx else 0`. The number may
read arrays, but nothing that the loop writes. A sum of floats has to start from 0.0 right before
the loop: then omitting the additions of zero is exact.

>>> show(search_to_gather, "y[n] = sum[c](where(c == p[n], t[n, c], 0.0))", y="f32[8]", p="i64[8]",
...      t="f32[8, 9]")
for n in 0..8:
    y[n] = 0.0
    y[n] += t[n, p[n]] if 0 <= p[n] and p[n] < 9 else 0.0
"""

from __future__ import annotations

from dataclasses import replace

from ...base.dataclass import dataclass
from ..analysis.effects import alloc_sizes_use
from ..ir import dtypes, rewrite, walk
from ..ir.assignments import Access, Break, Continue, Let
from ..ir.bounds import as_index
from ..ir.exact import as_static
from ..ir.expressions import Apply, Const, Dynamic, Expr, Index, Position, Read, Select, rebuild
from ..ir.expressions import walk as inner_of
from ..ir.fresh import Fresh, fresh_for
from ..ir.indexing import Affine, Quasi, Symbol, const, var
from ..ir.loops import Comment, For, If, Program, Stmt, Store, Update
from ..ir.ops import OPS

Body = tuple[Stmt, ...]


def search_to_gather(program: Program) -> Program:
    """Return the program with loops that search for one index run for that index only."""
    fresh = fresh_for(program)
    return rewrite.map_kernels(program, lambda body: _gather_in(body, fresh))


def _gather_in(body: Body, fresh: Fresh) -> Body:
    out: list[Stmt] = []
    for stmt in body:
        stmt = rewrite.map_bodies(stmt, lambda inner: _gather_in(inner, fresh))
        gathered = _gather_loop(stmt, out, fresh) if isinstance(stmt, For) else None
        out += (stmt,) if gathered is None else gathered
    return tuple(out)


@dataclass(frozen=True, slots=True)
class _Match:
    """A test that holds for at most one value of the loop variable."""

    number: Expr
    """The value, which does not depend on the loop variable."""
    rest: Expr | None
    """The remaining conjuncts."""


def _gather_loop(loop: For, before: list[Stmt], fresh: Fresh) -> Body | None:
    """Return what a loop does at the one index that it searches; None where it does more."""
    body = [stmt for stmt in loop.body if not isinstance(stmt, Comment)]
    trip_count = (loop.hi - loop.lo).constant
    if len(body) != 1 or loop.step != 1 or trip_count is None or trip_count < 1:
        return None
    match body[0]:
        case If(test, then, ()) as branch:
            match_ = _match_test(test, loop.symbol)
            if match_ is None or _clobbers(match_.number, then) or _has_jump(then):
                return None
            if alloc_sizes_use(then, frozenset({loop.symbol})):
                return None
            return _gather_branch(loop, branch, match_, fresh)
        case Update(Access(_, index), op, Select(test, yes, no), None) as update:
            match_ = _match_test(test, loop.symbol)
            depends = any(loop.symbol in _index_symbols(i) for i in index)
            if match_ is None or op.name != "add" or depends or _clobbers(match_.number, (update,)):
                return None
            if not _is_zero(no) or not _starts_from_zero(update, before):
                return None
            value = _substitute_number(yes, loop.symbol, match_.number)
            rest = (
                None
                if match_.rest is None
                else _substitute_number(match_.rest, loop.symbol, match_.number)
            )
            if value is None or rest is None and match_.rest is not None:
                return None
            chosen = Select(_guard(loop, match_.number, rest), value, no)
            return (replace(update, value=chosen, over=()),)
        case _:
            return None


def _gather_branch(loop: For, branch: If, match_: _Match, fresh: Fresh) -> Body:
    """Return the branch at the index; a number that is read from memory gets a symbol of its
    own."""
    index = as_index(match_.number)
    let: Body = ()
    if index is None:
        symbol = fresh.symbol(loop.symbol.name)
        let, index = (Let(symbol, match_.number, branch.span),), var(symbol)
    values = {loop.symbol: index}
    rest = None if match_.rest is None else rewrite.substitute_expr(match_.rest, values)
    then = rewrite.map_statements(branch.then, lambda stmt: (_without_letter(stmt, loop.symbol),))
    then = rewrite.substitute(then, values)
    return (*let, If(_guard(loop, Position(index), rest), then, (), branch.span))


def _without_letter(stmt: Stmt, symbol: Symbol) -> Stmt:
    """Return a statement whose terms are not counted by the loop of a symbol, which is gone."""
    if not isinstance(stmt, Update) or not any(symbol in at.symbols() for at in stmt.over):
        return stmt
    return replace(stmt, over=tuple(at for at in stmt.over if symbol not in at.symbols()))


def _match_test(test: Expr, symbol: Symbol) -> _Match | None:
    """Return the number that a test compares the symbol with."""
    match test:
        case Apply(op, (left, right), _) if op.name == "eq":
            for operand, number in ((left, right), (right, left)):
                if operand == Position(var(symbol)) and symbol not in walk.free_symbols(number):
                    return _Match(number, None)
        case Apply(op, (left, right), _) if op.name == "and":
            for operand, rest in ((left, right), (right, left)):
                match_ = _match_test(operand, symbol)
                if match_ is not None:
                    return replace(match_, rest=_conjunction(match_.rest, rest))
        case Select(left, right, Const(False)):
            match_ = _match_test(left, symbol)
            if match_ is not None:
                return replace(match_, rest=_conjunction(match_.rest, right))
        case _:
            pass
    return None


def _conjunction(left: Expr | None, right: Expr) -> Expr:
    return right if left is None else Select(left, right, Const(False, dtypes.bool_))


def _guard(loop: For, number: Expr, rest: Expr | None) -> Expr:
    """Return the test that the number is in the loop's range, and that the rest holds there."""
    lo, hi = Position(loop.lo), Position(loop.hi)
    inside = _comparison("and", _comparison("le", lo, number), _comparison("lt", number, hi))
    return inside if rest is None else _conjunction(inside, rest)


def _comparison(name: str, left: Expr, right: Expr) -> Expr:
    left, right = (
        Const(e.index.offset, dtypes.int64) if isinstance(e, Position) and not e.index.terms else e
        for e in (left, right)
    )
    return Apply(OPS[name], (left, right), dtypes.bool_)


def _clobbers(number: Expr, body: Body) -> bool:
    """Whether the statements write what the number reads."""
    written = {node.id for node in walk.writes(body)}
    return any(isinstance(e, Read) and e.node.id in written for e in inner_of(number))


def _has_jump(body: Body) -> bool:
    return any(isinstance(stmt, Break | Continue) for stmt in walk.statements(body))


def _is_zero(value: Expr) -> bool:
    if isinstance(value, Const):
        return repr(value.value) in ("0", "0.0")
    return as_index(value) == const(0)


def _starts_from_zero(update: Update, before: list[Stmt]) -> bool:
    """Whether adding zeros is the identity: always for integers, from 0.0 on for floats."""
    node = update.access.node
    if node.dtype.kind in "iu":
        return True
    last = next((stmt for stmt in reversed(before) if not isinstance(stmt, Comment)), None)
    match last:
        case Store(access, Const() as value) if node.dtype.kind == "f":
            return _is_same_access(access, update.access) and _is_zero(value)
        case _:
            return False


def _is_same_access(left: Access, right: Access) -> bool:
    """Whether two accesses are equal, and their subscripts read nothing that may change."""
    plain = all(isinstance(i, Affine) for i in left.index)
    return plain and left == right


def _index_symbols(index: Index) -> frozenset[Symbol]:
    return walk.free_symbols(index.value) if isinstance(index, Dynamic) else index.symbols()


def _substitute_number(expr: Expr, symbol: Symbol, number: Expr) -> Expr | None:
    """Return an expression with a number substituted for a symbol; None where that is not
    expressible."""
    plain = as_index(number)
    if plain is not None:
        return rewrite.substitute_expr(expr, {symbol: plain})
    indices = [i for e in inner_of(expr) for i in _affine_indices(e)]
    if any(symbol in i.symbols() and not _is_affine_in(i, symbol) for i in indices):
        return None
    return _replace_symbol(expr, symbol, number)


def _affine_indices(expr: Expr) -> list[Affine]:
    match expr:
        case Position(index):
            return [index]
        case Read(_, index):
            return [i for i in index if isinstance(i, Affine)]
        case _:
            return []


def _is_affine_in(index: Affine, symbol: Symbol) -> bool:
    """Whether the symbol occurs in an index expression outside of `Quasi` only."""
    quasi = (atom for atom, _ in index.terms if isinstance(atom, Quasi))
    return not any(symbol in atom.left.symbols() | atom.right.symbols() for atom in quasi)


def _replace_symbol(expr: Expr, symbol: Symbol, number: Expr) -> Expr:
    match expr:
        case Position(index) if symbol in index.symbols():
            return _index_value(index, symbol, number)
        case Read(_, indices):
            new = tuple(
                Dynamic(_replace_symbol(i.value, symbol, number)) if isinstance(i, Dynamic)
                else Dynamic(_index_value(i, symbol, number)) if symbol in i.symbols() else i
                for i in indices
            )  # fmt: skip
            return replace(expr, index=tuple(map(as_static, new)))
        case _:
            return rebuild(expr, lambda e: _replace_symbol(e, symbol, number), lambda i: i)


def _index_value(index: Affine, symbol: Symbol, number: Expr) -> Expr:
    """Return an index expression as a number, with another number substituted for the symbol."""
    factor = index.coefficient(symbol)
    rest = index - var(symbol) * factor
    if factor != 1:
        number = Apply(OPS["mul"], (number, Const(factor, dtypes.int64)), dtypes.int64)
    if rest != const(0):
        number = Apply(OPS["add"], (number, Position(rest)), dtypes.int64)
    return number
