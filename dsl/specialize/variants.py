"""A compiled form of a function: what it is for, what it became, and whether it fits a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from typing import Any, Literal

import numpy as np

from ...backends.gpu.foreign_arrays import as_placed as found
from ...backends.gpu.foreign_arrays import overlap_proxy_of
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
from ..values.values import KEYS, Path
from .dynamic_sizes import fits
from .recompile_reasons import Situation
from .signature import describe_input, is_foreign, looks_like_array, quick_key

Arguments = Mapping[str, Any]
Lookup = Callable[[str], object]
Getter = Callable[[Arguments], Any]
Use = Literal["read", "write", "identity"]
_NEVER = object()
"""The key of what was exchanged while a form was made for it: no value has it."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A captured value, or an attribute of something given: what it has to be for code to fit."""

    path: Path
    get: Getter
    spec: Spec
    key: object

    @property
    def static(self) -> bool:
        """Whether it matters which number it is."""
        return not isinstance(self.spec, NumberSpec)


@dataclass(frozen=True, slots=True)
class Specialisation:
    """One compiled form of a function: for what, why it was made, and what it became."""

    situation: Situation
    reason: str
    typed: Typed
    procedure: Procedure
    routine: link.Callee | None
    """None where only the assignments were asked for."""
    inputs: tuple[Getter, ...]
    """How to get what the routine is called with, in order. An array of a tensor is brought up to
    date: only what is about to run gets it."""
    watched: tuple[Watch, ...]
    seconds: float
    """What it took until there were assignments."""
    pairs: tuple[tuple[int, int], ...]
    """Inputs, by position, of which one is written: they may not share memory unseen."""
    merged: tuple[tuple[Getter, Getter], ...]
    """Inputs that are taken to be one array."""
    find: Callable[[Path], Getter]
    """How what a path leads to is got; see `getter`."""
    scalars: tuple[Any, ...]
    """The NumPy type of each input that may come as a number, None for arrays."""
    arrays: tuple[Getter, ...] = ()
    """How the inputs are got by which they are known, arrays of tensors whatever they hold."""
    has_fields: bool = False
    """Whether there are such among them."""
    fleeting: tuple[Getter, ...] = ()
    """How the tensors are got that have no array of their own, and objects that are compared."""
    same: tuple[int, ...] = ()
    """Which of these were one: for each the place of the first that is the same."""
    writes_fields: tuple[tuple[Getter, str], ...] = ()
    """How the tensors are got of which fields are written, and the names of the fields."""
    codes: CodeVariants = field(kw_only=True)
    """What the procedure becomes where it is linked."""
    direct: set[object] = field(default_factory=set)
    """Keys of calls whose arrays the code can be given as they are."""
    general: bool = False
    """Whether sizes or numbers come at run time which are constants of other forms."""

    @property
    def may_broadcast(self) -> bool:
        """Whether sizes that a run found to differ may broadcast in code for the call alone, where
        a size of 1 is known. Nothing was written or printed before that was found."""
        written = {one.node for one in self.procedure.parameters if one.written}
        return self.general and _is_checked_first(self.procedure.body, written)

    def holds(self, arguments: Arguments) -> bool:
        """Whether what it was made for beside the arguments is as it was.

        Arrays that share memory, and tensors given twice, are left to forms of their own.
        """
        for watch in self.watched:
            try:
                value = watch.get(arguments)
            except (AttributeError, LookupError, TypeError):
                return False
            if quick_key(value, watch.static) != watch.key:
                return False
        if self.merged or same_objects(self.fleeting, arguments) != self.same:
            return False
        given = [overlap_proxy_of(get(arguments)) for get in self.arrays]
        return not overlaps([value for value in given if isinstance(value, np.ndarray)])

    def match(self, arguments: Arguments, key: object) -> Match | None:
        """Return how the arguments fit this form, None where they do not."""
        clear, moved = True, {}
        seen: dict[Path, Any] = {}  # another thread may exchange what an attribute is at any moment
        for watch in self.watched:
            try:
                value = watch.get(arguments)
            except (AttributeError, LookupError, TypeError):
                return None
            seen[watch.path] = value
            key_now = quick_key(value, watch.static)
            if key_now != watch.key:
                spec = describe_input(value, watch.static)
                if not fits(spec, watch.spec):
                    return None
                if spec != watch.spec:
                    moved[watch.path] = key_now
                else:
                    clear = False
        held = [
            seen[path] if path.owner is None and path in seen else get(arguments)
            for path, get in zip(self.typed.passed, self.arrays, strict=True)
        ]
        for one, two in self.pairs:
            first, second = _memory(held[one]), _memory(held[two])
            if first is None or second is None or not np.may_share_memory(first, second):
                continue
            if _is_same(held[one], held[two]):
                return None
            clear = False
        if not all(_is_same(one(arguments), two(arguments)) for one, two in self.merged):
            return None
        if self.fleeting and same_objects(self.fleeting, arguments) != self.same:
            return None
        return Match(self._moved(moved) if moved else self, held, key, clear)

    def exchanged(self, arguments: Arguments) -> Path | None:
        """Return what leads now to something that this form was not made for; None for nothing."""
        for watch in self.watched:
            spec = spec_now(watch, arguments)
            if spec is None or not fits(spec, watch.spec):
                return watch.path
        return None

    def _moved(self, keys: Mapping[Path, object]) -> Specialisation:
        """Return this form as it is for calls with arrays of other sizes, by the ways to them."""
        watched = (replace(one, key=keys.get(one.path, one.key)) for one in self.watched)
        return replace(self, watched=tuple(watched), direct=set())


@dataclass(frozen=True, slots=True)
class Match:
    """A form, its inputs, the key of the call; `clear` where nothing needs a look."""

    known: Specialisation
    held: list[Any]
    """The inputs, of which arrays of tensors may hold older versions."""
    key: object
    clear: bool
    fresh: bool = False
    """Whether the form was made for this very call."""

    def given(self, arguments: Arguments) -> list[Any]:
        """Return what the code is called with, which is about to run: the newest versions."""
        known = self.known
        if not known.has_fields:
            return self.held
        return [
            held if path.owner is None else get(arguments)
            for path, held, get in zip(known.typed.passed, self.held, known.inputs, strict=True)
        ]

    def arrays(self) -> list[Any]:
        """Return the inputs, as arrays where they are lists or arrays of another class."""
        return [as_array(one) if looks_like_array(one) else one for one in self.held]

    @property
    def is_direct(self) -> bool:
        """Whether the code can be given the arrays as they are, and nothing needs a look."""
        return self.clear and self.key in self.known.direct


def _is_checked_first(body: Sequence[Statement], written: Set[Node]) -> bool:
    """Whether sizes are compared nowhere after something was printed, or written of these nodes."""
    touched = False
    for one in body:
        parts = one.body if isinstance(one, Block) else (one,)
        for part in parts:
            touched |= not written.isdisjoint(writes([part]))
            touched |= any(isinstance(inner, Print) for inner in statements([part]))
            for inner in statements([part]):
                if touched and isinstance(inner, Check) and inner.fault.code == "CD0301":
                    return False
    return True


def getter(typed: Typed, lookup: Lookup, path: Path, use: Use = "read") -> Getter:
    """Return the function that finds what a path leads to, given the arguments of a call.

    `use` says what an array of a tensor is wanted for; the one for `identity` is always the same,
    whatever it holds. It raises AttributeError or LookupError where it leads nowhere.
    """
    root, steps = path.root, path.steps
    if not path.captured:
        start: Getter = lambda arguments: arguments[root]  # noqa: E731 - the shortest of the four
    elif root in typed.constants:
        constant = typed.constants[root]
        start = lambda _: constant  # noqa: E731
    else:
        prefix, _, name = root.rpartition(":")
        found = typed.roots[prefix + ":"] if prefix else lookup
        start = lambda _: found(name)  # noqa: E731
    if not steps:
        return start if not path.captured else lambda arguments: _there(start(arguments))
    return lambda arguments: _there(_walk(start(arguments), steps, use))


def _there(value: Any) -> Any:
    """Return a value; the array of another package on a device as such."""
    if type(value) is np.ndarray:
        return value
    array = found(value)
    return value if array is None else array


def _walk(value: Any, steps: Sequence[object], use: Use) -> Any:
    for step in steps:
        match step:
            case int():
                value = value[step]
            case tuple():
                value = value[step[0]]
            case str() if step.startswith("@"):
                value = value.array(step[1:], use)
            case str() if step == KEYS:
                value = tuple(value)
            case _:
                value = getattr(value, str(step))
    return value


def watches(typed: Typed, find: Callable[[Path], Getter], arguments: Arguments) -> Iterator[Watch]:
    """Yield what has to stay as it is beside the arguments themselves."""
    for path, spec in typed.used.items():
        if path.captured or path.steps:
            get, is_static = find(path), not isinstance(spec, NumberSpec)
            value = get(arguments)
            now = _described(value, is_static)
            is_same = now is not None and fits(now, spec)  # or it was exchanged meanwhile
            yield Watch(path, get, spec, quick_key(value, is_static) if is_same else _NEVER)


def same_objects(getters: Sequence[Getter], arguments: Arguments) -> tuple[int, ...]:
    """Return for each of what is got the place of the first that is the very same."""
    ids = [id(get(arguments)) for get in getters]
    return tuple(map(ids.index, ids))


def spec_now(watch: Watch, arguments: Arguments) -> Spec | None:
    """Return what a watched path leads to now, None where it leads nowhere."""
    try:
        return _described(watch.get(arguments), watch.static)
    except (AttributeError, LookupError, TypeError):
        return None


def _described(value: Any, is_static: bool) -> Spec | None:
    """Return what a form knows of a value, None of one that is no input."""
    try:
        return describe_input(value, is_static)
    except TypeError:
        return None


def same_arrays(typed: Typed, lookup: Lookup, arguments: Arguments) -> dict[Path, Path]:
    """Return inputs that are the very array of an earlier input, where one of them is written."""
    parameters = typed.procedure.parameters
    if not any(parameter.written for parameter in parameters):
        return {}
    found = [
        (path, parameter.written, value)
        for path, parameter in zip(typed.passed, parameters, strict=True)
        if isinstance(
            value := overlap_proxy_of(getter(typed, lookup, path, "identity")(arguments)),
            np.ndarray,
        )
    ]
    first = [*range(len(found))]
    for pair in overlaps([value for _, _, value in found]):
        if pair.identical:
            first[pair.second] = min(first[pair.second], first[pair.first])
    changed = {first[at] for at, (_, written, _) in enumerate(found) if written}
    return {
        found[at][0]: found[one][0] for at, one in enumerate(first) if at != one and one in changed
    }


def exchanged(what: str, when: str, labels: tuple[Label, ...]) -> CdError:
    """Return the error of a call during which other code puts another array where one was."""
    return CdValueError(
        Diagnostic(
            "CD0830", f"{what} is exchanged by other code while {when}", labels,
            helps=("hold the array meanwhile: give the function the array, not what has it",),
        )
    )  # fmt: skip


def pairs_with(written: Sequence[bool]) -> tuple[tuple[int, int], ...]:
    """Return the pairs of positions of which one at least is written."""
    return tuple(
        (one, two)
        for two in range(len(written))
        for one in range(two)
        if written[one] or written[two]
    )


def _memory(value: Any) -> Any:
    """Return the array whose memory a value is, None for what has none, or has its own."""
    array = overlap_proxy_of(value)
    if isinstance(array, np.ndarray):
        return array
    return as_array(value) if looks_like_array(value) and is_foreign(value) else None


def _is_same(one: Any, two: Any) -> bool:
    """Whether two inputs are one array; what is made an array for each call is none."""
    arrays = [
        value
        for value in (overlap_proxy_of(one), overlap_proxy_of(two))
        if isinstance(value, np.ndarray)
    ]
    return len(arrays) == 2 and any(pair.identical for pair in overlaps(arrays))
