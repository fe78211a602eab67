"""One specialization of a function: its guards, its code, and matching against a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from typing import Any, Literal

import numpy as np

from ...backends.device_arrays.foreign_arrays import as_placed, overlap_proxy_of
from ...backends.runtime import link
from ...backends.runtime.arrays import as_array, overlaps
from ...backends.runtime.code_variants import CodeVariants
from ...base.dataclass import dataclass
from ...base.diagnostic import CdError, CdValueError, Diagnostic, Label
from ...lowering.ir.assignments import Block, Check, Print, Procedure, Statement
from ...lowering.ir.node import Node
from ...lowering.ir.walk import statements, writes
from ..elaborate.captures.inputs import NumberSpec, Spec
from ..elaborate.typed import Typed
from ..values.values import KEYS, Called, Path
from .dynamic_sizes import matches_spec
from .recompile_reasons import SpecializationKey
from .signature import cheap_key, describe_input, is_foreign, looks_like_array

Arguments = Mapping[str, Any]
Lookup = Callable[[str], object]
Getter = Callable[[Arguments], Any]
Use = Literal["read", "write", "identity"]
_NEVER = object()
"""The key of a value that was replaced during compilation: it matches nothing."""


@dataclass(frozen=True, slots=True)
class CaptureGuard:
    """The guard of a captured value or of an attribute of an argument."""

    path: Path
    get: Getter
    spec: Spec
    key: object

    @property
    def static(self) -> bool:
        """Whether the value of a number is static."""
        return not isinstance(self.spec, NumberSpec)


@dataclass(frozen=True, slots=True)
class Specialization:
    """One specialization of a function: its situation, the reason for it, and its code."""

    situation: SpecializationKey
    reason: str
    typed: Typed
    procedure: Procedure
    routine: link.Callee | None
    """None where only the assignments were requested."""
    inputs: tuple[Getter, ...]
    """The getters of the routine's arguments, in order. They update arrays of tensors: they are
    only called right before a run."""
    watched: tuple[CaptureGuard, ...]
    seconds: float
    """The time of elaboration."""
    pairs: tuple[tuple[int, int], ...]
    """Pairs of inputs, by position, of which one is written: they are checked for overlap."""
    merged: tuple[tuple[Getter, Getter], ...]
    """Pairs of inputs that are assumed to be identical arrays."""
    find: Callable[[Path], Getter]
    """Returns the getter of a path; see `make_getter`."""
    scalars: tuple[Any, ...]
    """The NumPy type of each scalar input, None for arrays."""
    arrays: tuple[Getter, ...] = ()
    """The getters of inputs by identity, which do not update arrays of tensors."""
    has_fields: bool = False
    """Whether arrays of tensors are among the inputs."""
    fleeting: tuple[Getter, ...] = ()
    """The getters of tensors without an array, and of objects compared by identity."""
    same: tuple[int, ...] = ()
    """The identities among these: for each the position of the first identical one."""
    writes_fields: tuple[tuple[Getter, str], ...] = ()
    """The getters of tensors with written fields, and the names of the fields."""
    codes: CodeVariants = field(kw_only=True)
    """The code variants of the procedure for linking."""
    direct: set[object] = field(default_factory=set)
    """Keys of calls whose arrays are passed to the code without conversion."""
    is_general: bool = False
    """Whether it has dynamic sizes or numbers that are static by default."""

    @property
    def may_broadcast(self) -> bool:
        """Whether a size mismatch of a run may be a broadcast in a static specialization, where a
        size of 1 is known. The check precedes all writes and prints."""
        written = {parameter.node for parameter in self.procedure.parameters if parameter.written}
        return self.is_general and _is_checked_first(self.procedure.body, written)

    def holds(self, arguments: Arguments) -> bool:
        """Whether all guards but those of the arguments hold.

        Arrays that share memory, and tensors passed twice, need separate specializations.
        """
        for watch in self.watched:
            try:
                value = watch.get(arguments)
            except (AttributeError, LookupError, TypeError):
                return False
            if cheap_key(value, watch.static) != watch.key:
                return False
        if self.merged or identity_classes(self.fleeting, arguments) != self.same:
            return False
        arrays = [overlap_proxy_of(get(arguments)) for get in self.arrays]
        return not overlaps([value for value in arrays if isinstance(value, np.ndarray)])

    def match(self, arguments: Arguments, key: object) -> Match | None:
        """Return the match with arguments, None where a guard fails."""
        is_clear, new_keys = True, {}
        seen: dict[Path, Any] = {}  # another thread may replace an attribute at any time
        for watch in self.watched:
            try:
                value = watch.get(arguments)
            except (AttributeError, LookupError, TypeError):
                return None
            seen[watch.path] = value
            key_now = cheap_key(value, watch.static)
            if key_now != watch.key:
                spec = describe_input(value, watch.static)
                if not matches_spec(spec, watch.spec):
                    return None
                if spec != watch.spec:
                    new_keys[watch.path] = key_now
                else:
                    is_clear = False
        inputs = [
            seen[path] if path.owner is None and path in seen else get(arguments)
            for path, get in zip(self.typed.passed, self.arrays, strict=True)
        ]
        for left, right in self.pairs:
            first, second = _shared_memory(inputs[left]), _shared_memory(inputs[right])
            if first is None or second is None or not np.may_share_memory(first, second):
                continue
            if _is_identical(inputs[left], inputs[right]):
                return None
            is_clear = False
        if not all(_is_identical(left(arguments), right(arguments)) for left, right in self.merged):
            return None
        if self.fleeting and identity_classes(self.fleeting, arguments) != self.same:
            return None
        return Match(self._with_keys(new_keys) if new_keys else self, inputs, key, is_clear)

    def first_changed(self, arguments: Arguments) -> Path | None:
        """Return the path of the first watched value that no longer matches, None for none."""
        for watch in self.watched:
            spec = current_spec(watch, arguments)
            if spec is None or not matches_spec(spec, watch.spec):
                return watch.path
        return None

    def _with_keys(self, keys: Mapping[Path, object]) -> Specialization:
        """Return the specialization with the keys of watched arrays of other sizes."""
        watched = (replace(watch, key=keys.get(watch.path, watch.key)) for watch in self.watched)
        return replace(self, watched=tuple(watched), direct=set())


@dataclass(frozen=True, slots=True)
class Match:
    """A specialization matched to a call; `clear` where no input needs a further check."""

    specialization: Specialization
    held: list[Any]
    """The inputs; arrays of tensors may be stale versions."""
    key: object
    clear: bool
    fresh: bool = False
    """Whether the specialization was compiled for this call."""

    def given(self, arguments: Arguments) -> list[Any]:
        """Return the arguments of the code, which is about to run, in their newest versions."""
        specialization = self.specialization
        if not specialization.has_fields:
            return self.held
        return [
            held if path.owner is None else get(arguments)
            for path, held, get in zip(
                specialization.typed.passed, self.held, specialization.inputs, strict=True
            )
        ]

    def arrays(self) -> list[Any]:
        """Return the inputs, with lists and foreign arrays converted."""
        return [as_array(value) if looks_like_array(value) else value for value in self.held]

    @property
    def is_direct(self) -> bool:
        """Whether the arrays can be passed to the code without conversion or checks."""
        return self.clear and self.key in self.specialization.direct


def _is_checked_first(body: Sequence[Statement], written: Set[Node]) -> bool:
    """Whether all size checks precede prints and writes to these nodes."""
    has_effects = False
    for statement in body:
        parts = statement.body if isinstance(statement, Block) else (statement,)
        for part in parts:
            has_effects |= not written.isdisjoint(writes([part]))
            has_effects |= any(isinstance(inner, Print) for inner in statements([part]))
            for inner in statements([part]):
                if has_effects and isinstance(inner, Check) and inner.fault.code == "CD0301":
                    return False
    return True


def make_getter(typed: Typed, lookup: Lookup, path: Path, use: Use = "read") -> Getter:
    """Return the function that evaluates a path, given the arguments of a call.

    `use` is the intended use of an array of a tensor; for `identity` it is always the same object,
    possibly stale. The function raises AttributeError or LookupError for a path without a value.
    """
    root, steps = path.root, path.steps
    if not path.captured:
        start: Getter = lambda arguments: arguments[root]  # noqa: E731 - the shortest of the four
    elif root in typed.constants:
        constant = typed.constants[root]
        start = lambda _: constant  # noqa: E731
    else:
        prefix, _, name = root.rpartition(":")
        find_root = typed.roots[prefix + ":"] if prefix else lookup
        start = lambda _: find_root(name)  # noqa: E731
    if not steps:
        return (
            start if not path.captured else lambda arguments: _unwrap_device_array(start(arguments))
        )
    return lambda arguments: _unwrap_device_array(_follow_path(start(arguments), steps, use))


def _unwrap_device_array(value: Any) -> Any:
    """Return a value; of another package's device array the wrapped array."""
    if type(value) is np.ndarray:
        return value
    array = as_placed(value)
    return value if array is None else array


def _follow_path(value: Any, steps: Sequence[object], use: Use) -> Any:
    for step in steps:
        match step:
            case int():
                value = value[step]
            case tuple():
                value = value[step[0]]
            case Called():
                value = step(value)
            case str() if step.startswith("@"):
                value = value.array(step[1:], use)
            case str() if step == KEYS:
                value = tuple(value)
            case _:
                value = getattr(value, str(step))
    return value


def capture_guards(
    typed: Typed, find: Callable[[Path], Getter], arguments: Arguments
) -> Iterator[CaptureGuard]:
    """Yield the guards of captured values and attributes."""
    for path, spec in typed.used.items():
        if path.captured or path.steps:
            get, is_static = find(path), not isinstance(spec, NumberSpec)
            value = get(arguments)
            current = _describe(value, is_static)
            is_same = current is not None and matches_spec(
                current, spec
            )  # else it was replaced meanwhile
            yield CaptureGuard(path, get, spec, cheap_key(value, is_static) if is_same else _NEVER)


def identity_classes(getters: Sequence[Getter], arguments: Arguments) -> tuple[int, ...]:
    """Return for each value the position of the first identical one."""
    ids = [id(get(arguments)) for get in getters]
    return tuple(map(ids.index, ids))


def current_spec(watch: CaptureGuard, arguments: Arguments) -> Spec | None:
    """Return the current specification of a watched path, None where it has no value."""
    try:
        return _describe(watch.get(arguments), watch.static)
    except (AttributeError, LookupError, TypeError):
        return None


def _describe(value: Any, is_static: bool) -> Spec | None:
    """Return the specification of a value, None for one that is no valid input."""
    try:
        return describe_input(value, is_static)
    except TypeError:
        return None


def find_aliases(typed: Typed, lookup: Lookup, arguments: Arguments) -> dict[Path, Path]:
    """Return inputs that are identical to an earlier input, where one of them is written."""
    parameters = typed.procedure.parameters
    if not any(parameter.written for parameter in parameters):
        return {}
    inputs = [
        (path, parameter.written, value)
        for path, parameter in zip(typed.passed, parameters, strict=True)
        if isinstance(
            value := overlap_proxy_of(make_getter(typed, lookup, path, "identity")(arguments)),
            np.ndarray,
        )
    ]
    first = [*range(len(inputs))]
    for pair in overlaps([value for _, _, value in inputs]):
        if pair.identical:
            first[pair.second] = min(first[pair.second], first[pair.first])
    written_groups = {first[at] for at, (_, written, _) in enumerate(inputs) if written}
    return {
        inputs[at][0]: inputs[representative][0]
        for at, representative in enumerate(first)
        if at != representative and representative in written_groups
    }


def replaced_array_error(what: str, when: str, labels: tuple[Label, ...]) -> CdError:
    """Return the error (CD0830) of a call during which an input is replaced at each look."""
    return CdValueError(
        Diagnostic(
            "CD0830", f"{what} is another one each time it is looked up while {when}", labels,
            helps=("look it up once, before the call, and pass what is found",),
        )
    )  # fmt: skip


def written_pairs(written: Sequence[bool]) -> tuple[tuple[int, int], ...]:
    """Return the pairs of positions of which at least one is written."""
    return tuple(
        (first, second)
        for second in range(len(written))
        for first in range(second)
        if written[first] or written[second]
    )


def _shared_memory(value: Any) -> Any:
    """Return the array whose memory a value uses, None where it has no shared memory."""
    array = overlap_proxy_of(value)
    if isinstance(array, np.ndarray):
        return array
    return as_array(value) if looks_like_array(value) and is_foreign(value) else None


def _is_identical(left: Any, right: Any) -> bool:
    """Whether two inputs are identical arrays; values converted at each call are not."""
    arrays = [
        value
        for value in (overlap_proxy_of(left), overlap_proxy_of(right))
        if isinstance(value, np.ndarray)
    ]
    return len(arrays) == 2 and any(pair.identical for pair in overlaps(arrays))
