"""A call written down as a recipe: what to compare, then what to run and return.

All that the long way compares for a form is in it: the keys of the arguments and of what the
form watches, which arrays may not overlap, which are one and the same. It is made of those keys,
not of what the objects are by now, so it never says more of a form than the form was made for.
What has no place in a plan, such as what only Python can compare, goes the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...backends import capabilities
from ...backends.call_entry import (
    ALIGNED,
    AXES,
    FLAGS,
    RANK,
    WRITABLE,
    CacheEntry,
    Guard,
    PartKind,
    ResultKind,
    ReturnKind,
    ValueSource,
)
from ...backends.runtime.arrays import converter_of
from ...backends.runtime.host_writes import NoInPlaceOperators
from ...backends.runtime.state import RUNTIME
from ...base import settings
from ...base.dataclass import dataclass
from ...base.diagnostic import CdError, CdMemoryError, Span
from ...lowering.ir import dtypes
from ..elaborate import typed as t
from ..elaborate.captures.inputs import ConstantSpec, InstanceSpec, MethodSpec, ObjectSpec
from ..source.function_source import MISSING, Scope
from ..specialize.guards import CallGuard, CallShape, GuardProgram, pack_guards
from ..specialize.signature import cheap_key, describe_input, is_field, is_like_tuple
from ..specialize.variants import Arguments, CaptureGuard, Lookup, Match, Specialization
from ..values.types import WEAK_INT, Kind
from ..values.values import KEYS, Path
from .execute import slice_view

if TYPE_CHECKING:
    from ...backends.direct_calls import CallerLibrary, DirectCall, HasDirectCalls
    from ...backends.interface import Array


_FIXED = (bool, str, bytes, int, float, complex, type(None), type(...), np.dtype, np.generic)
"""Types of constants that never change: the same object means the same value."""
_MANY = 16
"""A tuple of more constants that is captured has to be the same object."""
_WEAK = {
    dtypes.float64: ResultKind.FLOAT, dtypes.int64: ResultKind.INTEGER,
    dtypes.bool_: ResultKind.BOOL,
    dtypes.complex128: ResultKind.COMPLEX,
}  # fmt: skip


class _Unfit(Exception):
    """What a call needs has no place in a plan."""


def fast_path_loader(match: Match) -> CallerLibrary | None:
    """Return the library of the fast path, whose compilation is started; None where there is none
    for this code."""
    if _direct_calls(match.known) is None:
        return None
    try:
        return RUNTIME.load_caller(wait=False)
    except CdError:
        return None


def _direct_calls(known: Specialization) -> HasDirectCalls | None:
    """Return the code of a specialization where it can be called without Python, else None."""
    return None if known.routine is None else capabilities.direct_calls(known.routine.code)


def pack_program(match: Match, form: CallShape, recipe: GuardProgram) -> CacheEntry | None:
    """Return the plan of a recipe for calls that a form fits without a look, None for none.

    The settings are those that the form was found under.
    """
    known, now = match.known, settings.current()
    if now != known.situation.settings or now.debug_log_from_routines:  # another thread may `use`
        return None
    code = _direct_calls(known)
    try:
        call = None if code is None else code.direct_call(match.arrays())
    except CdError:
        return None
    if call is None:
        return None
    fail = partial(_fail, call, known.procedure.span)
    return pack_guards(recipe, form, now, call.addresses, call, fail, known.may_broadcast)


def _fail(call: DirectCall, span: Span, status: int, *fault: int) -> NoReturn:
    """Raise what a status means, at the function where it has no other place."""
    try:
        call.fail(status, *fault)
    except CdMemoryError as problem:
        raise problem.placed(span) from None


def build_guards(match: Match, arguments: Arguments, lookup: Lookup) -> GuardProgram | None:
    """Return the recipe for calls like one that a form fits without a look, None for none."""
    try:
        return _recipe(match, arguments, lookup)
    except (_Unfit, AttributeError, LookupError, TypeError):  # also where a path leads nowhere now
        return None


def _recipe(match: Match, arguments: Arguments, lookup: Lookup) -> GuardProgram:
    known, returns = match.known, match.known.typed.returns
    code = _direct_calls(known)
    if code is None:
        raise _Unfit
    steps = _Steps(known, lookup)
    steps.arguments(arguments, match.key)
    for watch in known.watched:
        prefix, colon, name = watch.path.root.rpartition(":")
        if isinstance(known.typed.owners.get(prefix + colon), str):
            continue  # a name of the library's, which does not change
        value = watch.get(arguments)
        if value is MISSING and name in steps.letters(prefix):
            continue  # whatever number it may be bound to
        if watch.path.steps[-1:] == (KEYS,):
            steps.keys(watch)
            continue
        steps.check(steps.place(watch.path), watch.key, value, watch.path)
    for path in (one for one in known.typed.passed if one.is_table):
        table = known.typed.constants[path.root]
        steps.check(steps.place(path), cheap_key(table, True), table, path)
    passed = [*zip(known.typed.passed, known.procedure.parameters, known.scalars, strict=True)]
    held = match.arrays()
    inputs = [
        steps.input(path, dtype) if path.owner is None
        else steps.field(path, path.owner, parameter.written, known.find(path.owner)(arguments))
        for path, parameter, dtype in passed
    ]  # fmt: skip
    pairs = [(inputs[one][0], inputs[two][0]) for one, two in known.pairs]
    whole, parts, finish = _flat(steps, returns)
    return GuardProgram(
        steps=steps.found,
        pairs=[pair for pair in pairs if steps.full.issuperset(pair)],
        equals=[
            *((steps.array(one), steps.array(two)) for one, two in known.situation.alias.items()),
            *_one_object(steps, known),
        ],
        inputs=inputs,
        results=[_result(code, at, held, _kinds(returns, at)) for at in range(len(code.results))],
        whole=whole,
        parts=parts,
        finish=finish,
        settle=_settling(steps, [path for path, parameter, _ in passed if parameter.written]),
    )


def _one_object(steps: _Steps, known: Specialization) -> list[tuple[int, int]]:
    """Return the pairs of values that have to be one object; what has to be two has no place."""
    same = known.same[len(known.typed.nowhere) :]
    if len(set(same)) > 1:
        raise _Unfit
    places = [steps.place(path) for path in known.typed.compared]
    return [(places[0], other) for other in places[1:]]


def _settling(steps: _Steps, written: Sequence[Path]) -> Callable[..., None] | None:
    """Return what notes new versions of the fields that a call has written; None for none."""
    fields = [
        (steps.place(path.owner), str(path.steps[-1]).removeprefix("@"))
        for path in written
        if path.owner is not None
    ]
    return partial(_written, fields) if fields else None


def _is_like(layout: object, constant: bool, memory: str, tensor: Any) -> bool:
    there: bool = (tensor.layout, tensor.constant, tensor.memory) == (layout, constant, memory)
    return there


def _newest(given: Any) -> Array | None:
    array: Array | None = given.ready(False)
    return array


def _version(name: str, is_written: bool, tensor: Any) -> Array | None:
    array: Array | None = tensor.field(name).ready(is_written)
    return array


def _written(fields: Sequence[tuple[int, str]], *values: Any) -> None:
    for owner, name in fields:
        values[owner].field(name).record_host_write()


def _is_fixed(value: object) -> bool:
    """Whether a value never changes: a constant, or a tuple of those."""
    return isinstance(value, _FIXED) or type(value) is tuple and all(map(_is_fixed, value))


Parts = list[tuple[int, Any]]


def _flat(steps: _Steps, returns: t.Return) -> tuple[int, Parts, Callable[..., object] | None]:
    """Return the parts of what is returned, how they are, and what makes more of them."""
    match returns:
        case t.Many(items, kind, None) if not any(isinstance(one, t.Many) for one in items):
            whole = ReturnKind.LIST if kind == "list" else ReturnKind.TUPLE
        case _:
            items, whole = (returns,), ReturnKind.ONE
    with suppress(_Unfit):
        return whole, [steps.part(one) for one in items], None
    parts: Parts = []
    made = _assembled(steps, returns, parts)
    return ReturnKind.TUPLE, parts, lambda *given: made(given)


def _assembled(steps: _Steps, returns: t.Return, parts: Parts) -> Callable[[Any], Any]:
    """Return what makes what is returned of all parts; adds those that it needs."""

    def of(one: t.Return) -> int:
        parts.append(steps.part(one))
        return len(parts) - 1

    match returns:
        case t.Many(items, kind, made):
            each = [_assembled(steps, item, parts) for item in items]
            if made is not None:
                return lambda given: tuple.__new__(made, [one(given) for one in each])
            of_kind = list if kind == "list" else tuple
            return lambda given: of_kind([one(given) for one in each])
        case t.Argument(path, t.Sliced() as view):
            return _assembled_slices(of(_numpys(steps, path)), view, of)
        case t.New(number, t.Sliced() as view):
            return _assembled_slices(of(t.New(number, None, None)), view, of)
        case t.Updating(item, updates):
            inner = _assembled(steps, item, parts)
            return partial(_updated, inner, [_update(steps, one, parts) for one in updates])
        case t.Part(item, name):
            if isinstance(item, t.Argument) and item.view is None:
                item = _numpys(steps, item.path)
            inner = _assembled(steps, item, parts)
            return lambda given: getattr(inner(given), name)
        case _:
            return itemgetter(of(returns))


def _assembled_slices(
    at: int, view: t.Sliced, of: Callable[[t.Return], int]
) -> Callable[[Any], Any]:
    """Return what makes a view of the array among the parts at `at`; `of` adds its bounds."""
    numbers = {one.number: of(t.New(one.number, None, WEAK_INT)) for one in view.results}
    return lambda given: slice_view(
        given[at], view, {number: given[place] for number, place in numbers.items()}
    )


def _numpys(steps: _Steps, path: Path) -> t.Argument:
    """Return an argument as it is, which is an array of NumPy's: what else one has is not known."""
    if steps.found[steps.place(path)].check[0] != Guard.ARRAY:
        raise _Unfit
    return t.Argument(path, None)


_Made = Callable[[Any], Any]
"""Makes something of all parts."""


def _update(steps: _Steps, one: t.Update, parts: Parts) -> tuple[_Made, str, _Made, _Made | None]:
    """Return what makes the object, the name and the value of an attribute that is set, and whether
    it is."""
    owner = _assembled(steps, t.Argument(one.owner, None), parts)
    given = None if one.given is None else _assembled(steps, one.given, parts)
    return owner, one.name, _assembled(steps, one.value, parts), given


def _updated(
    item: _Made, updates: Sequence[tuple[_Made, str, _Made, _Made | None]], parts: Any
) -> Any:
    """Set attributes of objects, and return what the function returns."""
    made = item(parts)
    found = [
        (owner(parts), name, value(parts))
        for owner, name, value, given in updates
        if given is None or given(parts)
    ]
    for owner, name, value in found:
        setattr(owner, name, value)
    return made


@dataclass(slots=True)
class _Steps:
    """The steps of a recipe so far, by path."""

    known: Specialization
    lookup: Lookup
    found: list[CallGuard] = field(default_factory=list)
    places: dict[Path, int] = field(default_factory=dict)
    full: set[int] = field(default_factory=set)
    """The arrays that have elements."""
    made: dict[int, int] = field(default_factory=dict)
    """The arrays that are made of lists and of others' arrays, by the numbers of those."""
    numbers: dict[int, Any] = field(default_factory=dict)
    """The types of the numbers that are given in each call."""

    def arguments(self, arguments: Arguments, key: Any) -> None:
        """Add all arguments, as their keys say."""
        for (name, value), one in zip(arguments.items(), key, strict=True):
            path = Path(name)
            self.check(self.add(path, (ValueSource.ARGUMENT, name)), one, value, path)

    def add(self, path: Path, source: tuple[Any, ...]) -> int:
        """Add a value that may be anything; return its number."""
        self.places[path] = len(self.found)
        self.found.append(CallGuard(source))
        return self.places[path]

    def place(self, path: Path) -> int:
        """Return the number of the value that a path leads to, added where there is none."""
        if path in self.places:
            return self.places[path]
        if not path.steps:
            return self.add(path, self.captured(path.root))
        base = self.place(Path(path.root, path.steps[:-1], path.captured))
        match path.steps[-1]:
            case str() as name:
                if name.startswith("@"):
                    raise _Unfit
                return self.add(path, (ValueSource.ATTRIBUTE, base, name))
            case (key, *_) | key:
                return self.add(path, (ValueSource.ITEM, base, key))

    def captured(self, root: str) -> tuple[Any, ...]:
        """Return where a captured name is found, as `forms.getter` finds it."""
        typed = self.known.typed
        if root in typed.constants:
            return ValueSource.CONSTANT, typed.constants[root]
        prefix, _, name = root.rpartition(":")
        scope = self.scope(prefix)
        if not isinstance(scope, Scope):
            raise _Unfit
        around = (scope.globals, scope.builtins)
        if name not in scope.cells and not all(type(names) is dict for names in around):
            raise _Unfit
        return ValueSource.NAME, scope, name

    def scope(self, prefix: str) -> object:
        """Return the scope that names with a prefix are looked up in."""
        lookup = self.known.typed.roots[prefix + ":"] if prefix else self.lookup
        return getattr(lookup, "__self__", None)

    def letters(self, prefix: str) -> Mapping[str, object]:
        """Return the names with a prefix that are index letters for good."""
        scope = self.scope(prefix)
        return scope.letters if isinstance(scope, Scope) else {}

    def check(self, at: int, key: Any, value: Any, path: Path) -> None:
        """Have a value compared with a key; see `keys.quick_key`."""
        match key:
            case (np.dtype(), tuple() as shape, _, _):
                check = Guard.ARRAY, *key
                self.note_elements(at, shape)
            case (type() as kind, int() as number) if kind is int:
                check = Guard.EQUAL, number
                if not -(2**63) <= number < 2**63:
                    raise _Unfit
            case (type() as kind, np.dtype(), tuple(), tuple(), int()):
                check = self.foreign(at, key, value, path)
            case (type(), *keys) if path.captured and len(keys) > _MANY and _is_fixed(value):
                check = Guard.SAME, value
            case (type() as kind, *keys) if kind is list or is_like_tuple(kind):
                check = Guard.SIZED, kind, len(keys)
                for number, one in enumerate(keys):
                    inner = Path(path.root, (*path.steps, number), path.captured)
                    self.check(self.place(inner), one, value[number], inner)
            case (type() as kind,):
                check = self.number(at, kind)
            case (type() as kind, tuple(), bool(), str()) if issubclass(kind, NoInPlaceOperators):
                check = Guard.TYPE, kind
                same = partial(_is_like, *key[1:])
                self.found.append(CallGuard((ValueSource.MADE, at, same), (Guard.SAME, True)))
            case ("list", type() as kind, *sizes):
                check = self.listed(at, np.empty(sizes[::-1], kind))
            case _:
                check = self.constant(key, value, path)
        self.found[at].check = check

    def foreign(self, at: int, key: Any, value: Any, path: Path) -> tuple[Any, ...]:
        """Return the check of an array of another class than NumPy's own.

        The head of a subclass of NumPy's is an array's; of others the code gets what NumPy makes
        of them in each call. Where that is written, it has to be their own memory, not a copy.
        The code reads the host's array of a field, as `field` says, and not a snapshot of it.
        """
        kind, *layout = key
        if issubclass(kind, np.ndarray):
            self.note_elements(at, layout[1])
            return Guard.ARRAY, *layout, kind
        make = _newest if is_field(value) else converter_of(value)
        if make is None or cheap_key(make(value), False) != tuple(layout):
            raise _Unfit
        self.made[at] = self.converted(at, make, make(value))
        written = zip(self.known.typed.passed, self.known.procedure.parameters, strict=True)
        if any(parameter.written and one == path for one, parameter in written):
            self.found.append(
                CallGuard((ValueSource.MADE, at, make), (Guard.SHARED, self.made[at]))
            )
        return Guard.TYPE, kind

    def converted(self, at: int, make: Callable[[Any], Any], like: Any) -> int:
        """Add the array that a function makes of a value; return its number."""
        made = len(self.found)
        self.found.append(CallGuard((ValueSource.MADE, at, make)))
        self.check(made, cheap_key(like, False), like, Path(""))
        return made

    def note_elements(self, at: int, shape: tuple[int, ...]) -> None:
        """Note whether an array has elements, which may overlap others."""
        if len(shape) > RANK:
            raise _Unfit
        if 0 not in shape:
            self.full.add(at)

    def listed(self, at: int, like: Any) -> tuple[Any, ...]:
        """Return the check of a list of numbers; the code gets the array that is made of it."""
        self.made[at] = self.converted(at, np.asarray, like)
        return (Guard.LISTED,)

    def keys(self, watch: CaptureGuard) -> None:
        """Have a dictionary be as long as it was; a step finds each of its items."""
        match watch.key:
            case (type() as kind, *keys) if kind is tuple:
                owner = Path(watch.path.root, watch.path.steps[:-1], watch.path.captured)
                self.found[self.place(owner)].check = Guard.SIZED, dict, len(keys)
            case _:
                raise _Unfit

    def number(self, at: int, kind: type) -> tuple[Any, ...]:
        """Return the check of a number whose value is given in each call."""
        if kind not in (float, int, complex) and not issubclass(kind, np.number):
            raise _Unfit
        self.numbers[at] = np.dtype(kind)
        if kind is float or kind is int:
            return (Guard.FLOAT if kind is float else Guard.INTEGER,)
        return Guard.NUMBER, kind

    def constant(self, key: Any, value: Any, path: Path) -> tuple[Any, ...]:
        """Return the check of what has to be the very object that it is now."""
        match key:
            case MethodSpec(kind, _, function):
                inner = Path(path.root, (*path.steps, "__func__"), path.captured)
                self.found[self.place(inner)].check = Guard.SAME, function
                return Guard.TYPE, kind
            case InstanceSpec(kind):
                return Guard.TYPE, kind
            case ObjectSpec(number, _) if number != id(value):
                raise _Unfit
            case ObjectSpec():
                pass
            case ConstantSpec(kind, _, number) if kind is float:
                return Guard.BITS, number
            case ConstantSpec():
                if not isinstance(value, _FIXED) or describe_input(value, True) != key:
                    raise _Unfit
            case (kind, constant) if kind in (bool, str):
                value = constant
            case _ if key is not value:
                raise _Unfit
        return Guard.SAME, value

    def input(self, path: Path, dtype: Any) -> tuple[int, bool]:
        """Return the number of what the code gets, and whether it is an array."""
        at = self.made.get(self.place(path), self.place(path))
        is_array = self.found[at].check[0] == Guard.ARRAY
        if not is_array and (at not in self.numbers or self.numbers[at] != dtype):
            raise _Unfit
        return at, is_array

    def field(self, path: Path, owner: Path, is_written: bool, tensor: Any) -> tuple[int, bool]:
        """Return the number of the host's array of a tensor's field, where that has the newest
        version and nothing uses it: the long way waits for what has to be waited for."""
        name = str(path.steps[-1]).removeprefix("@")
        host = _version(name, is_written, tensor)
        if host is None:
            raise _Unfit
        of = partial(_version, name, is_written)
        at = self.add(path, (ValueSource.MADE, self.place(owner), of))
        layout = host.dtype, host.shape, host.strides, host.flags.num & FLAGS
        self.note_elements(at, host.shape)
        self.found[at].check = Guard.ARRAY, *layout
        return at, True

    def array(self, path: Path) -> int:
        """Return the number of an array."""
        at, is_array = self.input(path, None)
        if not is_array:
            raise _Unfit
        return at

    def part(self, returns: t.Return) -> tuple[int, Any]:
        """Return one thing of what comes back."""
        match returns:
            case t.Constant(value):
                return PartKind.OBJECT, value
            case t.Argument(path, None) if not path.is_field:
                return PartKind.VALUE, self.place(path)
            case t.New(number, None, _):
                return PartKind.RESULT, number
            case t.New(number, t.Strided() as view, None):
                return PartKind.VIEW, self.view(number, view)
            case t.Argument(path, t.Strided() as view) if not path.is_field:
                at = self.place(path)
                return PartKind.VIEW, self.view_of_value(self.made.get(at, at), view)
            case _:
                raise _Unfit

    def view(self, number: int, view: t.Strided) -> tuple[int, ...]:
        """Return the words of a view of a result."""
        code = _direct_calls(self.known)
        if code is None or number in code.allocated_results:
            raise _Unfit
        return _view(number, code.results[number].dtype.numpy.itemsize, view, True)

    def view_of_value(self, at: int, view: t.Strided) -> tuple[int, ...]:
        """Return the words of a view of an array that a step finds.

        The host's array of a field has none: what is returned is a view of a snapshot.
        """
        is_live = self.found[at].source[-1] is _newest
        match self.found[at].check:
            case (Guard.ARRAY, dtype, _, strides, flags, *_) if flags & ALIGNED and not is_live:
                if any(step % dtype.itemsize for step in strides):
                    raise _Unfit
                return _view(-1 - at, dtype.itemsize, view, bool(flags & WRITABLE))
        raise _Unfit


def _view(number: int, size: int, view: t.Strided, writable: bool) -> tuple[int, ...]:
    """Return the words of a view of an array with elements of that size."""
    repeats = any(n > 1 and not step for n, step in zip(view.shape, view.strides, strict=True))
    offset = 0 if 0 in view.shape else view.offset
    strides = (step * size for step in view.strides)
    flags = WRITABLE if writable and view.writable and not repeats else 0
    return (number, offset * size, flags, len(view.shape), *view.shape, *strides)


def _result(
    code: HasDirectCalls, number: int, held: Sequence[Array], kinds: set[Kind | None]
) -> tuple[int, Any, tuple[int, ...]]:
    """Return how a result is made: as an array, all of it written or not, or as a number."""
    if len(kinds) != 1:
        raise _Unfit
    (kind,) = kinds
    node = code.results[number]
    if number in code.allocated_results:
        if kind is not None or node.rank > AXES:
            raise _Unfit
        return ResultKind.MADE, node.dtype.numpy, (1,) * node.rank
    shape = code.shape_of(number, held)
    if len(shape) > RANK:
        raise _Unfit
    if kind is None:
        made = ResultKind.EMPTY if number in code.written_results else ResultKind.ARRAY
        return made, node.dtype.numpy, shape
    number_of = _WEAK.get(node.dtype) if kind.weak else ResultKind.NUMBER
    if number_of is None or shape:
        raise _Unfit
    return number_of, node.dtype.numpy, shape


def _kinds(returns: t.Return, number: int) -> set[Kind | None]:
    """Return what a result is returned as: kinds of numbers, None for an array."""
    match returns:
        case t.New(at, _, kind) if at == number:
            return {kind}
        case t.Many(items):
            return {kind for item in items for kind in _kinds(item, number)}
        case t.Updating(item, updates):
            more = (one for up in updates for one in (up.value, up.given) if one is not None)
            return {kind for one in (item, *more) for kind in _kinds(one, number)}
        case t.Part(item):
            return _kinds(item, number)
        case t.Argument(_, t.Sliced() as view) | t.New(_, t.Sliced() as view) if (
            t.Result(number) in view.results
        ):
            return {WEAK_INT}
        case _:
            return set()
