"""The table of a function's specializations for one choice of settings, and its history."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

import numpy as np

from ...base.dataclass import dataclass
from ...lowering.ir.assignments import Access, Assign, Check, For, Let, Statement
from ...lowering.ir.expressions import Apply, Cast, Expr, Position, reads, walk
from ...lowering.ir.indexing import Affine, Quasi, Symbol, substitute
from ...lowering.ir.node import Node
from ...lowering.ir.walk import expressions_of, free_symbols, statements
from ..elaborate.captures.inputs import ArraySpec, ConstantSpec, DynamicArrays
from ..values.types import may_be_given
from ..values.values import Path
from .dynamic_sizes import SIZES, SizeHistory, Specs, matches_spec, with_dynamic_sizes
from .layout_copies import can_take_copies
from .signature import describe_input
from .variants import Arguments, Getter, Specialization

MAX_VARIANTS = 64
"""The most specializations for arguments of one kind, which differ in captured values and
attributes. The oldest are evicted."""

_MAX_FACTOR = 1 << 20
"""Dynamic integers have 64 bits, Python's are unbounded: for products with larger factors the
numbers stay static, so that Python computes them exactly or refuses."""
_PRODUCT_OPS = frozenset(["mul", "product"])
_EXACT_OPS = frozenset(
    "add sub mul product neg eq ne lt le gt ge and or logical_not "
    "bitand bitor bitxor invert".split()
)
_DIVISION_OPS = frozenset(["div", "floordiv", "mod"])
_NO_NODES: frozenset[Node] = frozenset()

Variants = dict[object, tuple[Specialization, ...]]


@dataclass
class NumberHistory:
    """The values so far of numbers that are compiled in, by path: captured ones, attributes of
    arguments, and static parameters.

    Code is specialized for their values. A number that came with three values is dynamic in the
    next specialization, unless it has to be static.
    """

    seen: dict[Path, set[str]] = field(default_factory=dict)
    closed: set[Path] = field(default_factory=set)

    def opened(self) -> frozenset[Path]:
        """Return the paths of the numbers that are dynamic from now on."""
        many = {path for path, texts in self.seen.items() if len(texts) >= SIZES}
        return frozenset(many - self.closed)

    def note(self, specialization: Specialization) -> None:
        """Record the values of a specialization."""
        for watch in specialization.watched:
            match watch.spec:
                case ConstantSpec(kind, text) if may_be_given(kind):
                    self.seen.setdefault(watch.path, set()).add(text)
        for name in specialization.typed.statics:
            match specialization.situation.arguments[name]:
                case ConstantSpec(kind, text) if kind is int or issubclass(kind, np.integer):
                    self.seen.setdefault(Path(name), set()).add(text)

    def close(self, paths: frozenset[Path]) -> None:
        """Exclude numbers that have to be static."""
        self.closed |= paths


@dataclass
class ShapeHistory:
    """The sizes so far of arrays that are captured or attributes of arguments.

    As for arguments, an axis that came in three sizes is dynamic in the next specialization.
    """

    seen: dict[tuple[Path, ArraySpec], dict[int, set[int]]] = field(default_factory=dict)
    """By the path of an array and the rest of its specification, then by axis."""
    ways: dict[Path, Getter] = field(default_factory=dict)
    closed: set[Path] = field(default_factory=set)

    def opened(self, arguments: Arguments) -> DynamicArrays:
        """Return the arrays of a call whose sizes become dynamic, with their specifications."""
        arrays: dict[Path, tuple[object, ArraySpec]] = {}
        for path, get in self.ways.items():
            with contextlib.suppress(AttributeError, LookupError, TypeError):
                value = get(arguments)
                spec = describe_input(value, True)
                if isinstance(spec, ArraySpec) and path not in self.closed:
                    sizes = self.seen.get((path, _erase_sizes(spec)), {})
                    axes = {axis for axis, many in sizes.items() if len(many) >= SIZES}
                    if (wanted := with_dynamic_sizes(spec, axes)) != spec:
                        arrays[path] = value, wanted
        return arrays

    def note(self, specialization: Specialization) -> None:
        """Record the sizes of a specialization."""
        for watch in specialization.watched:
            if isinstance(watch.spec, ArraySpec):
                self.ways[watch.path] = watch.get
                sizes_by_axis = self.seen.setdefault((watch.path, _erase_sizes(watch.spec)), {})
                for axis, size in enumerate(watch.spec.shape):
                    if size is not None:
                        sizes_by_axis.setdefault(axis, set()).add(size)

    def close(self, arrays: Iterable[Path]) -> None:
        """Exclude arrays whose sizes have to be static."""
        self.closed.update(arrays)


def _erase_sizes(spec: ArraySpec) -> ArraySpec:
    return replace(spec, shape=(None,) * len(spec.shape))


@dataclass
class VariantTable:
    """The specializations for one choice of settings, by cheap key and by specifications."""

    constants: tuple[frozenset[str], ...] = ()
    """The parameters that are constants in specializations, the latest first: the key of each has
    the values of its own."""
    quick: Variants = field(default_factory=dict)
    full: Variants = field(default_factory=dict)
    general_variants: list[tuple[Specs, Specialization]] = field(default_factory=list)
    """General specializations, with the specifications that they were compiled for."""
    sizes: SizeHistory = field(default_factory=SizeHistory)
    numbers: NumberHistory = field(default_factory=NumberHistory)
    shapes: ShapeHistory = field(default_factory=ShapeHistory)
    alone: Variants = field(default_factory=dict)
    """Static specializations, by cheap key with all constants, where a general one fails."""
    linked: Variants = field(default_factory=dict)
    """Specializations for linking, which calls do not use, by specifications."""

    def note(self, specialization: Specialization) -> None:
        """Record the numbers and sizes of a specialization."""
        constant = specialization.typed.constant
        self.constants = (constant, *(known for known in self.constants if known != constant))
        self.numbers.note(specialization)
        self.shapes.note(specialization)

    def find_exact(self, specs: Specs) -> tuple[Specialization, ...]:
        """Return the specializations for exactly these specifications."""
        return self.full.get(tuple(specs.values()), ())

    def find_general(self, specs: Specs) -> Iterator[Specialization]:
        """Yield the general specializations that match a call, also with copies to C order."""
        packed = self.sizes.with_copies(specs)
        for wanted, specialization in list(self.general_variants):
            if all(matches_spec(specs[name], wanted[name]) for name in specs) or (
                packed is not None
                and all(matches_spec(packed[name], wanted[name]) for name in specs)
                and can_take_copies(specialization, specs, wanted)
            ):
                yield specialization


def must_be_static(specialization: Specialization, numbers: frozenset[Path]) -> frozenset[Path]:
    """Return those of the dynamic numbers that may change the result compared to static ones.

    Static numbers are computed by Python, which raises where it cannot. Sums, products and
    comparisons agree in both cases, and so do divisions and integer products whose operands are
    checked; see `Builder.guard`.
    """
    pairs = zip(specialization.typed.passed, specialization.typed.procedure.parameters, strict=True)
    dynamic = {parameter.node: path for path, parameter in pairs if path in numbers}
    body = list(statements(specialization.typed.procedure.body))
    dependences = _find_dependences(specialization, dynamic, body)
    values = (e for s in body for e in expressions_of(s))
    unsafe = [
        node
        for value in values
        for part in walk(value)
        for node in _unsafe_numbers(part, dependences)
    ]
    first_values = {loop.symbol: loop.lo for loop in body if isinstance(loop, For)}
    for check in body:
        if isinstance(check, Check) and check.fault.code == "CD0601":
            index, extent = check.values[:2]
            is_uniform = free_symbols(index).isdisjoint(check.over.symbols)
            if is_uniform and not _fails_below_zero(index, extent):
                unsafe += _index_numbers(index, first_values, dependences)
    return frozenset(dynamic[node] for node in unsafe)


def _index_numbers(
    index: Expr, first_values: Mapping[Symbol, Affine], dependences: _Dependences
) -> frozenset[Node]:
    """Return the numbers that decide whether a subscript counts from the end: a static one does
    where it is negative, of a loop's variable where its first value is."""
    match index:
        case Position(at):
            first_index = substitute(at, first_values).constant
            return dependences.of(index) if first_index is None or first_index < 0 else _NO_NODES
        case _:
            return dependences.of(index)


def _fails_below_zero(index: Expr, extent: Expr) -> bool:
    """Whether a subscript that is negative is out of range also if it counts from the end, as
    `n - 1` is of an axis of `n` elements: there is no integer for which both are possible."""
    match index, extent:
        case Position(Affine(((Symbol() as number, factor),), offset)), Position(size):
            pass
        case _:
            return False
    if size.symbols() - {number} or any(not isinstance(atom, Symbol) for atom, _ in size.terms):
        return False
    of_size = sum(times for _, times in size.terms)
    lowest, highest = -math.inf, math.inf
    for times, rest in (  # of what is not negative: -index - 1, index + size and size
        (-factor, -offset - 1),
        (factor + of_size, offset + size.offset),
        (of_size, size.offset),
    ):
        if times > 0:
            lowest = max(lowest, -(rest // times))
        elif times < 0:
            highest = min(highest, rest // -times)
        elif rest < 0:
            return True
    return lowest > highest


@dataclass(frozen=True, slots=True)
class _Dependences:
    """The values that depend on the dynamic numbers and sizes only: static if these were."""

    origins: Mapping[Node | Symbol, frozenset[Node]]
    """The numbers on which each such node or symbol depends."""
    guarded: frozenset[Expr]

    def of(self, expr: Expr) -> frozenset[Node]:
        """Return the dynamic numbers on which an expression depends."""
        return frozenset().union(*(self.origins.get(leaf, ()) for leaf in _leaves(expr)))

    def is_determined(self, expr: Expr) -> bool:
        """Whether an expression depends on no other run-time value."""
        return all(leaf in self.origins for leaf in _leaves(expr))


def _leaves(expr: Expr) -> Iterator[Node | Symbol]:
    """Yield the nodes that an expression reads, and the symbols in its indices."""
    yield from (read.node for read in reads(expr))
    for part in walk(expr):
        if isinstance(part, Position):
            yield from part.index.symbols()


def _find_dependences(
    specialization: Specialization, given: Mapping[Node, Path], body: list[Statement]
) -> _Dependences:
    """Compute the dependences of symbols and scalars on the dynamic numbers, and, with none, on
    dynamic sizes."""
    mixed: frozenset[Node] = frozenset()
    while True:  # what is computed from a variable of mixed values is of mixed values, too
        dependences, found = _origins_with_mixed(specialization, given, body, mixed)
        if found <= mixed:
            return dependences
        mixed |= found


def _origins_with_mixed(
    specialization: Specialization,
    given: Mapping[Node, Path],
    body: list[Statement],
    mixed: frozenset[Node],
) -> tuple[_Dependences, frozenset[Node]]:
    """Return the dependences where the variables `mixed` hold other run-time values, too, and the
    variables that are found to do so."""
    origins: dict[Node | Symbol, frozenset[Node]] = {node: frozenset((node,)) for node in given}
    extents = (n for p in specialization.typed.procedure.parameters for n in p.node.shape)
    origins.update((size, _NO_NODES) for extent in extents for size in extent.symbols())
    dependences, found = _Dependences(origins, specialization.typed.guarded), set[Node]()
    for statement in body:
        match statement:
            case Let(symbol, value):
                target: Node | Symbol = symbol
            case Assign(Access(node, ()), op, _, value) if node not in given:
                target = node
                if op is not None or not dependences.is_determined(value):
                    found.add(node)
            case _:
                continue
        if target not in mixed and dependences.is_determined(value):
            origins[target] = origins.get(target, _NO_NODES) | dependences.of(value)
    return dependences, frozenset(found)


def used_as_constants(specialization: Specialization, numbers: frozenset[Path]) -> frozenset[Path]:
    """Return those of the numbers that a specialization has as constants nevertheless."""
    used = specialization.typed.used
    return frozenset(path for path in numbers if isinstance(used.get(path), ConstantSpec))


def _unsafe_numbers(part: Expr, dependences: _Dependences) -> frozenset[Node]:
    """Return the numbers for which an operation may differ from Python's result."""
    numbers = dependences.of(part)
    if not numbers:
        return numbers
    is_determined = dependences.is_determined(part)
    match part:
        case Position(index) if _may_be_large(index, dependences):
            return numbers
        case Apply(op, (_, right)) if op.name in _DIVISION_OPS and is_determined:
            if part in dependences.guarded or _is_safe(right, dependences.guarded):
                return _NO_NODES
            return numbers if dependences.of(right) else _NO_NODES
        case Apply(op, operands) if op.name == "pow":
            return _NO_NODES.union(
                *(
                    dependences.of(operand)
                    for operand in operands
                    if dependences.is_determined(operand)
                )
            )
        case Apply(op) if is_determined and op.name not in _EXACT_OPS:
            return numbers
        case Apply(op, _, dtype) if (
            is_determined and dtype.kind in "iu" and op.name in _PRODUCT_OPS
        ):
            return _NO_NODES if part in dependences.guarded else numbers
        case Cast(value, dtype) if is_determined and dtype.kind in "iu":
            is_exact = value.dtype.kind == "b" or value.dtype == dtype
            return _NO_NODES if is_exact else numbers
        case _:
            return _NO_NODES


def _is_safe(divisor: Expr, guarded: frozenset[Expr]) -> bool:
    """Whether a divisor is checked, or at least 1 for all numbers."""
    while isinstance(divisor, Cast):
        divisor = divisor.value
    match divisor:
        case Position(Affine(((Quasi("max", left, right), 1),), offset)):
            return max(left.constant or 0, right.constant or 0) + offset >= 1
        case _:
            return divisor in guarded


def _may_be_large(index: Affine, dependences: _Dependences) -> bool:
    """Whether dynamic numbers in an index expression are multiplied by a large or dynamic factor
    without a check."""
    for atom, factor in index.terms:
        if isinstance(atom, Symbol):
            is_large = atom in dependences.origins and abs(factor) > _MAX_FACTOR
        else:
            whole = Affine(((atom, 1),))
            product = atom.op == "mul" and Position(whole) not in dependences.guarded
            is_determined = dependences.is_determined(Position(whole))
            inner = any(_may_be_large(side, dependences) for side in (atom.left, atom.right))
            is_large = is_determined and (product or abs(factor) > _MAX_FACTOR) or inner
        if is_large:
            return True
    return False


def add_variant(forms: Variants, key: object, specialization: Specialization) -> None:
    """Add a specialization as the first to be tried for a key, and evict the oldest."""
    forms[key] = (specialization, *forms.get(key, ())[: MAX_VARIANTS - 1])


def add_general_variant(
    forms: list[tuple[Specs, Specialization]], specs: Specs, specialization: Specialization
) -> None:
    """Add a general specialization as the last to be tried, and evict the oldest."""
    forms.append((specs, specialization))
    del forms[:-MAX_VARIANTS]
