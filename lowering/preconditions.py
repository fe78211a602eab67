"""Preconditions of passes: tests of what a program contains, which cost less than the passes.

A pass whose precondition does not hold is the identity, and its module is not imported: a program
of one loop over elements needs few of them. Each test is of the contents of statements, which are
memoized in them, so that the next pass looks only at what has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple

from . import thresholds
from .analysis.expression_cost import function_cost
from .ir.assignments import Permute
from .ir.expressions import Apply, Index, Position, Read, Select, walk
from .ir.indexing import Affine, Quasi, Symbol
from .ir.loops import Check, Comment, Fill, For, If, Program, Stmt, Update, While
from .ir.memo import memoize
from .ir.node import Node
from .ir.ops import OPS
from .ir.walk import bodies, expressions_of, inside, parts


class Contents(NamedTuple):
    """What a statement or a program contains, with all that is nested in it."""

    kinds: frozenset[type] = frozenset()
    """Of statements and expressions, and `Quasi` for subscripts and positions that are not
    affine."""
    ops: frozenset[str] = frozenset()
    """The operations of expressions, and of updates."""
    loop_depth: int = 0
    """How deep loops are nested."""
    longest: int = 0
    """The most statements of one list, comments aside."""
    rewrites: bool = False
    """Whether iterations of a loop may write the same element: its symbol is in no subscript."""
    counts_terms: bool = False
    """Whether an update has the positions of its terms, so that they may be reassociable."""
    fewest: float = inf
    """The smallest static trip count of a loop."""


def contents_of(program: Program) -> Contents:
    """Return what a program contains."""
    return _join(Contents(), (kernel.body for kernel in program.kernels))


def has_branches(program: Program) -> bool:
    """Whether a program has tests or loops of unknown length."""
    return not contents_of(program).kinds.isdisjoint((If, While))


def has_checks(program: Program) -> bool:
    """Whether a program has checks, which may fail."""
    return Check in contents_of(program).kinds


def has_permutations(program: Program) -> bool:
    """Whether arrays of a program trade places."""
    return Permute in contents_of(program).kinds


def has_clamps(program: Program) -> bool:
    """Whether tests, or subscripts that are clamped or wrap, may depend on the iteration."""
    return not contents_of(program).kinds.isdisjoint((If, Select, Quasi))


def has_remainders(program: Program) -> bool:
    """Whether quotients or remainders may be subscripts."""
    contents = contents_of(program)
    return Quasi in contents.kinds or "mod" in contents.ops


def has_equality_tests(program: Program) -> bool:
    """Whether values are tested for equality, as by a search."""
    return "eq" in contents_of(program).ops


def has_arg_reductions(program: Program) -> bool:
    """Whether a program has an argmin or argmax."""
    return not contents_of(program).ops.isdisjoint(("argmin", "argmax"))


def has_guarded_accumulators(program: Program) -> bool:
    """Whether a loop in a loop may update elements under a test, argmin and argmax included."""
    is_guarded = has_arg_reductions(program) or If in contents_of(program).kinds
    return is_guarded and has_nested_loops(program)


def has_functions(program: Program) -> bool:
    """Whether a program has functions that take many instructions."""
    least = thresholds.LIBRARY_CALL_COST
    return any(function_cost(OPS[name]) >= least for name in OPS.keys() & contents_of(program).ops)


def has_nested_loops(program: Program) -> bool:
    """Whether a program has a loop in a loop."""
    return contents_of(program).loop_depth > 1


def has_short_loops(program: Program) -> bool:
    """Whether a loop has so few iterations that it may be a vector loop as it is."""
    return contents_of(program).fewest <= thresholds.MAX_FORCED_SIMD_ITERATIONS


def has_siblings(program: Program) -> bool:
    """Whether a program has two statements one after the other, comments aside."""
    return contents_of(program).longest > 1


def has_accumulators(program: Program) -> bool:
    """Whether iterations of a loop may write the same element."""
    return contents_of(program).rewrites


def has_contractions(program: Program) -> bool:
    """Whether arrays might be contracted, or elements kept in registers."""
    return has_local_arrays(program) or has_accumulators(program)


def has_products(program: Program) -> bool:
    """Whether a program has products that are rounded once, together with a sum."""
    return "product" in contents_of(program).ops


def has_answers(program: Program) -> bool:
    """Whether an `any` or `all` is computed, which may be certain early."""
    contents = contents_of(program)
    return contents.rewrites and not contents.ops.isdisjoint(("or", "and"))


def has_terms(program: Program) -> bool:
    """Whether a program has sums whose terms have positions."""
    return contents_of(program).counts_terms


def has_locals(program: Program) -> bool:
    """Whether a program has temporaries."""
    return bool(program.locals)


def has_local_arrays(program: Program) -> bool:
    """Whether a program has temporaries that are arrays."""
    return any(node.rank for node in program.locals)


def has_complex(program: Program) -> bool:
    """Whether a program has arrays or scalars of complex numbers."""
    return any(node.dtype.kind == "c" for node in nodes_of(program))


def has_requests(program: Program) -> bool:
    """Whether a program has requests for memory modes."""
    return any(node.request is not None for node in nodes_of(program))


def nodes_of(program: Program) -> tuple[Node, ...]:
    """Return the parameters, results and temporaries of a program."""
    return (*(p.node for p in program.parameters), *program.results, *program.locals)


def _join(own: Contents, lists: Iterable[tuple[Stmt, ...]]) -> Contents:
    """Return some contents with those of lists of statements."""
    kinds, ops, depth, longest, rewrites, counts_terms, fewest = own
    for body in lists:
        longest = max(longest, sum(not isinstance(stmt, Comment) for stmt in body))
        for stmt in body:
            nested = _contents(stmt)
            kinds, ops = kinds | nested.kinds, ops | nested.ops
            depth, longest = max(depth, nested.loop_depth), max(longest, nested.longest)
            rewrites = rewrites or nested.rewrites
            counts_terms = counts_terms or nested.counts_terms
            fewest = min(fewest, nested.fewest)
    return Contents(kinds, ops, depth, longest, rewrites, counts_terms, fewest)


def _contents(stmt: Stmt) -> Contents:
    """Return what a statement contains; memoized."""
    try:
        memo: Contents = stmt.contents
    except AttributeError:
        memo = memoize(stmt, "contents", _find_contents(stmt))
    return memo


def _find_contents(stmt: Stmt) -> Contents:
    all_parts = [part for expr in expressions_of(stmt) for part in walk(expr)]
    kinds = {type(stmt), *map(type, all_parts)}
    ops = {part.op.name for part in all_parts if isinstance(part, Apply)}
    subscripts: list[Index] = [at for access in parts(stmt).targets for at in access.index]
    for part in all_parts:
        if isinstance(part, Read):
            subscripts += part.index
        elif isinstance(part, Position):
            subscripts.append(part.index)
    if any(isinstance(atom, Quasi) for atom in _atoms(subscripts)):
        kinds.add(Quasi)
    if isinstance(stmt, Update):
        ops.add(stmt.op.name)
    counts_terms = isinstance(stmt, Update) and bool(stmt.over)
    own = Contents(frozenset(kinds), frozenset(ops), counts_terms=counts_terms)
    joined = _join(own, bodies(stmt))
    if isinstance(stmt, For):
        rewrites = joined.rewrites or any(_rewrites(s, stmt.symbol) for s in inside(stmt))
        trip_count = (stmt.hi - stmt.lo).constant
        fewest = joined.fewest if trip_count is None else min(joined.fewest, trip_count)
        depth = joined.loop_depth + 1
        return joined._replace(loop_depth=depth, rewrites=rewrites, fewest=fewest)
    return joined


def _atoms(subscripts: Iterable[Index]) -> Iterator[Symbol | Quasi]:
    """Yield the terms of affine subscripts."""
    for at in subscripts:
        if isinstance(at, Affine):
            for atom, _ in at.terms:
                yield atom


def _rewrites(stmt: Stmt, symbol: Symbol) -> bool:
    """Whether a statement may write the same element for several values of a symbol."""
    return isinstance(stmt, Fill) or any(
        all(isinstance(at, Affine) and symbol not in at.symbols() for at in access.index)
        or not all(isinstance(at, Affine) for at in access.index)
        for access in parts(stmt).targets
    )
