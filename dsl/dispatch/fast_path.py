"""A call written down as a guard program: what to compare, then what to run and return.

All that the long way compares for a form is in it: the keys of the arguments and of what the
form watches, which arrays may not overlap, which are one and the same. It is made of those keys,
not of what the objects are by now, so it never says more of a form than the form was made for.
What has no place in a plan, such as what only Python can compare, goes the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...backends import capabilities
from ...backends.call_entry import (
    ALIGNED,
    FLAGS,
    RANK,
    VALUES,
    WRITABLE,
    CacheEntry,
    Guard,
    PartKind,
    ValueSource,
)
from ...backends.runtime.arrays import converter_of
from ...backends.runtime.host_writes import NoInPlaceOperators
from ...backends.runtime.state import RUNTIME
from ...base import settings
from ...base.dataclass import dataclass
from ...base.diagnostic import CdError, CdMemoryError, Span
from ..elaborate import typed as t
from ..elaborate.captures.inputs import ConstantSpec, InstanceSpec, MethodSpec, ObjectSpec
from ..elaborate.captures.instances import c_method_of, is_method
from ..source.function_source import MISSING, Scope
from ..specialize.guards import CallGuard, CallShape, GuardProgram, pack_guards
from ..specialize.signature import cheap_key, describe_input, is_field, is_like_tuple
from ..specialize.variants import Arguments, CaptureGuard, Lookup, Match, Specialization
from ..values.values import KEYS, Called, Path
from .returned_parts import Unfit, describe_result, flatten_return, kinds_of_result, view_words

if TYPE_CHECKING:
    from ...backends.direct_calls import CallerLibrary, DirectCall, HasDirectCalls
    from ...backends.interface import Array


_FIXED = (bool, str, bytes, int, float, complex, type(None), type(...), np.dtype, np.generic)
"""Types of constants that never change: the same object means the same value."""
_MANY = 16
"""A tuple of more constants that is captured has to be the same object. More objects that have to
be two are not compared pair by pair."""


def fast_path_loader(match: Match) -> CallerLibrary | None:
    """Return the library of the fast path, whose compilation is started; None where there is none
    for this code."""
    if _direct_calls(match.specialization) is None:
        return None
    try:
        return RUNTIME.load_caller(wait=False)
    except CdError:
        return None


def _direct_calls(specialization: Specialization) -> HasDirectCalls | None:
    """Return the code of a specialization where it can be called without Python, else None."""
    return (
        None
        if specialization.routine is None
        else capabilities.direct_calls(specialization.routine.code)
    )


def pack_program(match: Match, form: CallShape, guards: GuardProgram) -> CacheEntry | None:
    """Return the plan of a guard program for calls that a form fits without a look, None for none.

    The settings are those that the form was found under.
    """
    specialization, now = match.specialization, settings.current()
    if (
        now != specialization.situation.settings or now.debug_log_from_routines
    ):  # another thread may `use`
        return None
    code = _direct_calls(specialization)
    try:
        call = None if code is None else code.direct_call(match.arrays())
    except CdError:
        return None
    if call is None:
        return None
    fail = partial(_fail, call, specialization.procedure.span)
    return pack_guards(guards, form, now, call.addresses, call, fail, specialization.may_broadcast)


def _fail(call: DirectCall, span: Span, status: int, *fault: int) -> NoReturn:
    """Raise what a status means, at the function where it has no other place."""
    try:
        call.fail(status, *fault)
    except CdMemoryError as problem:
        raise problem.placed(span) from None


def build_guards(match: Match, arguments: Arguments, lookup: Lookup) -> GuardProgram | None:
    """Return the guard program for calls like one that a form fits without a look, or None."""
    try:
        return _guard_program(match, arguments, lookup)
    except (Unfit, AttributeError, LookupError, TypeError):  # also where a path leads nowhere now
        return None


def _guard_program(match: Match, arguments: Arguments, lookup: Lookup) -> GuardProgram:
    variant, returns = match.specialization, match.specialization.typed.returns
    code = _direct_calls(variant)
    if code is None:
        raise Unfit
    steps = _Steps(variant, lookup)
    steps.arguments(arguments, match.key)
    for watch in variant.watched:
        prefix, colon, name = watch.path.root.rpartition(":")
        if isinstance(variant.typed.owners.get(prefix + colon), str):
            continue  # a name of the library's, which does not change
        value = watch.get(arguments)
        if value is MISSING and name in steps.letters(prefix):
            continue  # whatever number it may be bound to
        if watch.path.steps[-1:] == (KEYS,):
            steps.keys(watch)
            continue
        steps.check(steps.index_of(watch.path), watch.key, value, watch.path)
    for path in (first for first in variant.typed.passed if first.is_table):
        table = variant.typed.constants[path.root]
        steps.check(steps.index_of(path), cheap_key(table, True), table, path)
    passed = [
        *zip(variant.typed.passed, variant.procedure.parameters, variant.scalars, strict=True)
    ]
    held = match.arrays()
    inputs = [
        steps.input(path, dtype) if path.owner is None
        else steps.field(path, path.owner, parameter.written, variant.find(path.owner)(arguments))
        for path, parameter, dtype in passed
    ]  # fmt: skip
    pairs = [(inputs[first][0], inputs[second][0]) for first, second in variant.pairs]
    whole, parts, finish = flatten_return(steps, returns)
    return GuardProgram(
        steps=steps.guards,
        pairs=[pair for pair in pairs if steps.full.issuperset(pair)],
        equals=[
            *(
                (steps.array(first), steps.array(second))
                for first, second in variant.situation.alias.items()
            ),
            *_identities(steps, variant),
        ],
        inputs=inputs,
        results=[
            describe_result(code, at, held, kinds_of_result(returns, at))
            for at in range(len(code.results))
        ],
        whole=whole,
        parts=parts,
        finish=finish,
        settle=_settling(steps, [path for path, parameter, _ in passed if parameter.written]),
    )


def _identities(steps: _Steps, specialization: Specialization) -> Iterator[tuple[int, int]]:
    """Yield the pairs of values that have to be one object or two, as `GuardProgram.equals` are."""
    same = specialization.same[len(specialization.typed.nowhere) :]
    first_of: dict[int, int] = {}
    for group, path in zip(same, specialization.typed.compared, strict=True):
        index = steps.index_of(path)
        if group in first_of:
            yield first_of[group], index
            continue
        if len(first_of) == _MANY:
            raise Unfit
        yield from ((-1 - first, index) for first in first_of.values())
        first_of[group] = index


def _settling(steps: _Steps, written: Sequence[Path]) -> Callable[..., None] | None:
    """Return what notes new versions of the fields that a call has written; None for none."""
    fields = [
        (steps.index_of(path.owner), str(path.steps[-1]).removeprefix("@"))
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


def _holds(items: tuple[Any, ...], value: list[Any]) -> bool:
    """Whether a list, which may have been changed meanwhile, holds these objects."""
    return type(value) is list and len(value) == len(items) and all(map(is_, value, items))


def _is_fixed(value: object) -> bool:
    """Whether a value never changes: a constant, or a tuple of those."""
    return isinstance(value, _FIXED) or type(value) is tuple and all(map(_is_fixed, value))


@dataclass(slots=True)
class _Steps:
    """The steps of a guard program so far, by path."""

    specialization: Specialization
    lookup: Lookup
    guards: list[CallGuard] = field(default_factory=list)
    indices: dict[Path, int] = field(default_factory=dict)
    full: set[int] = field(default_factory=set)
    """The arrays that have elements."""
    conversions: dict[int, int] = field(default_factory=dict)
    """The arrays that are made of lists and of others' arrays, by the numbers of those."""
    numbers: dict[int, Any] = field(default_factory=dict)
    """The types of the numbers that are given in each call."""

    def arguments(self, arguments: Arguments, key: Any) -> None:
        """Add all arguments, as their keys say."""
        for (name, value), item_key in zip(arguments.items(), key, strict=True):
            path = Path(name)
            self.check(self.add(path, (ValueSource.ARGUMENT, name)), item_key, value, path)

    def add(self, path: Path, source: tuple[Any, ...]) -> int:
        """Add a value that may be anything; return its number."""
        self.indices[path] = len(self.guards)
        self.guards.append(CallGuard(source))
        return self.indices[path]

    def index_of(self, path: Path) -> int:
        """Return the number of the value that a path leads to, added where there is none."""
        if path in self.indices:
            return self.indices[path]
        if not path.steps:
            return self.add(path, self.captured(path.root))
        base = self.index_of(Path(path.root, path.steps[:-1], path.captured))
        match path.steps[-1]:
            case str() as name:
                if name.startswith("@"):
                    raise Unfit
                return self.add(path, (ValueSource.ATTRIBUTE, base, name))
            case Called() as called:
                return self.add(path, (ValueSource.MADE, base, called))
            case (key, *_) | key:
                return self.add(path, (ValueSource.ITEM, base, key))

    def captured(self, root: str) -> tuple[Any, ...]:
        """Return where a captured name is found, as `forms.getter` finds it."""
        typed = self.specialization.typed
        if root in typed.constants:
            return ValueSource.CONSTANT, typed.constants[root]
        prefix, _, name = root.rpartition(":")
        scope = self.scope(prefix)
        if not isinstance(scope, Scope):
            raise Unfit
        around = (scope.globals, scope.builtins)
        if name not in scope.cells and not all(type(names) is dict for names in around):
            raise Unfit
        return ValueSource.NAME, scope, name

    def scope(self, prefix: str) -> object:
        """Return the scope that names with a prefix are looked up in."""
        lookup = self.specialization.typed.roots[prefix + ":"] if prefix else self.lookup
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
                    raise Unfit
            case (type() as kind, np.dtype(), tuple(), tuple(), int()):
                check = self.foreign(at, key, value, path)
            case (type(), *keys) if path.captured and len(keys) > _MANY and _is_fixed(value):
                check = Guard.SAME, value
            case (type() as kind, *keys) if kind is list or is_like_tuple(kind):
                check = Guard.SIZED, kind, len(keys)
                if kind is list and len(keys) > _MANY and all(map(_is_fixed, value)):
                    self.same_items(at, key, tuple(value))
                    keys = []
                if len(keys) > VALUES:
                    raise Unfit
                for number, item_key in enumerate(keys):
                    inner = Path(path.root, (*path.steps, number), path.captured)
                    self.check(self.index_of(inner), item_key, value[number], inner)
            case (type() as kind,):
                check = self.number(at, kind)
            case (type() as kind, tuple(), bool(), str()) if issubclass(kind, NoInPlaceOperators):
                check = Guard.TYPE, kind
                same = partial(_is_like, *key[1:])
                self.guards.append(CallGuard((ValueSource.MADE, at, same), (Guard.SAME, True)))
            case ("list", type() as kind, *sizes):
                check = self.listed(at, np.empty(sizes[::-1], kind))
            case _:
                check = self.constant(key, value, path)
        self.guards[at].check = check

    def same_items(self, at: int, key: Any, items: tuple[Any, ...]) -> None:
        """Have a list hold these very items, which never change and have this key."""
        if cheap_key([*items], True) != key:
            raise Unfit
        holds = partial(_holds, items)
        self.guards.append(CallGuard((ValueSource.MADE, at, holds), (Guard.SAME, True)))

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
            raise Unfit
        self.conversions[at] = self.converted(at, make, make(value))
        written = zip(
            self.specialization.typed.passed, self.specialization.procedure.parameters, strict=True
        )
        if any(parameter.written and passed_path == path for passed_path, parameter in written):
            self.guards.append(
                CallGuard((ValueSource.MADE, at, make), (Guard.SHARED, self.conversions[at]))
            )
        return Guard.TYPE, kind

    def converted(self, at: int, make: Callable[[Any], Any], like: Any) -> int:
        """Add the array that a function makes of a value; return its number."""
        number = len(self.guards)
        self.guards.append(CallGuard((ValueSource.MADE, at, make)))
        self.check(number, cheap_key(like, False), like, Path(""))
        return number

    def note_elements(self, at: int, shape: tuple[int, ...]) -> None:
        """Note whether an array has elements, which may overlap others."""
        if len(shape) > RANK:
            raise Unfit
        if 0 not in shape:
            self.full.add(at)

    def listed(self, at: int, like: Any) -> tuple[Any, ...]:
        """Return the check of a list of numbers; the code gets the array that is made of it."""
        self.conversions[at] = self.converted(at, np.asarray, like)
        return (Guard.LISTED,)

    def keys(self, watch: CaptureGuard) -> None:
        """Have a dictionary be as long as it was; a step finds each of its items."""
        match watch.key:
            case (type() as kind, *keys) if kind is tuple:
                owner = Path(watch.path.root, watch.path.steps[:-1], watch.path.captured)
                self.guards[self.index_of(owner)].check = Guard.SIZED, dict, len(keys)
            case _:
                raise Unfit

    def number(self, at: int, kind: type) -> tuple[Any, ...]:
        """Return the check of a number whose value is given in each call."""
        if kind not in (float, int, complex) and not issubclass(kind, np.number):
            raise Unfit
        self.numbers[at] = np.dtype(kind)
        if kind is float or kind is int:
            return (Guard.FLOAT if kind is float else Guard.INTEGER,)
        return Guard.NUMBER, kind

    def constant(self, key: Any, value: Any, path: Path) -> tuple[Any, ...]:
        """Return the check of what has to be the very object that it is now."""
        match key:
            case MethodSpec(kind, _, function) if not is_method(value):
                check = Guard.SAME, function
                self.guards.append(
                    CallGuard((ValueSource.MADE, self.index_of(path), c_method_of), check)
                )
                return Guard.TYPE, kind
            case MethodSpec(kind, _, function):
                inner = Path(path.root, (*path.steps, "__func__"), path.captured)
                self.guards[self.index_of(inner)].check = Guard.SAME, function
                return Guard.TYPE, kind
            case InstanceSpec(kind):
                return Guard.TYPE, kind
            case ObjectSpec(number, _) if number != id(value):
                raise Unfit
            case ObjectSpec():
                pass
            case ConstantSpec(kind, _, number) if kind is float:
                return Guard.BITS, number
            case ConstantSpec():
                if not isinstance(value, _FIXED) or describe_input(value, True) != key:
                    raise Unfit
            case (kind, constant) if kind in (bool, str):
                value = constant
            case _ if key is not value:
                raise Unfit
        return Guard.SAME, value

    def input(self, path: Path, dtype: Any) -> tuple[int, bool]:
        """Return the number of what the code gets, and whether it is an array."""
        at = self.conversions.get(self.index_of(path), self.index_of(path))
        is_array = self.guards[at].check[0] == Guard.ARRAY
        if not is_array and (at not in self.numbers or self.numbers[at] != dtype):
            raise Unfit
        return at, is_array

    def field(self, path: Path, owner: Path, is_written: bool, tensor: Any) -> tuple[int, bool]:
        """Return the number of the host's array of a tensor's field, where that has the newest
        version and nothing uses it: the long way waits for what has to be waited for."""
        name = str(path.steps[-1]).removeprefix("@")
        host = _version(name, is_written, tensor)
        if host is None:
            raise Unfit
        of = partial(_version, name, is_written)
        at = self.add(path, (ValueSource.MADE, self.index_of(owner), of))
        layout = host.dtype, host.shape, host.strides, host.flags.num & FLAGS
        self.note_elements(at, host.shape)
        self.guards[at].check = Guard.ARRAY, *layout
        return at, True

    def array(self, path: Path) -> int:
        """Return the number of an array."""
        at, is_array = self.input(path, None)
        if not is_array:
            raise Unfit
        return at

    def part(self, returns: t.Return) -> tuple[int, Any]:
        """Return one thing of what comes back."""
        match returns:
            case t.Constant(value):
                return PartKind.OBJECT, value
            case t.Argument(path, None) if not path.is_field:
                return PartKind.VALUE, self.index_of(path)
            case t.New(number, None, _):
                return PartKind.RESULT, number
            case t.New(number, t.Strided() as view, None):
                return PartKind.VIEW, self.view(number, view)
            case t.Argument(path, t.Strided() as view) if not path.is_field:
                at = self.index_of(path)
                return PartKind.VIEW, self.view_of_value(self.conversions.get(at, at), view)
            case _:
                raise Unfit

    def view(self, number: int, view: t.Strided) -> tuple[int, ...]:
        """Return the words of a view of a result."""
        code = _direct_calls(self.specialization)
        if code is None or number in code.allocated_results:
            raise Unfit
        return view_words(number, code.results[number].dtype.numpy.itemsize, view, True)

    def view_of_value(self, at: int, view: t.Strided) -> tuple[int, ...]:
        """Return the words of a view of an array that a step finds.

        The host's array of a field has none: what is returned is a view of a snapshot.
        """
        is_live = self.guards[at].source[-1] is _newest
        match self.guards[at].check:
            case (Guard.ARRAY, dtype, _, strides, flags, *_) if flags & ALIGNED and not is_live:
                if any(step % dtype.itemsize for step in strides):
                    raise Unfit
                return view_words(-1 - at, dtype.itemsize, view, bool(flags & WRITABLE))
        raise Unfit
