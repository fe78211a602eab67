"""`@cd`: a function that is read, compiled for the arguments it is given, and called like any other.

A call finds the specialisation for its arguments' types, shapes and layouts and for the values it
captures, or makes one: parse once, elaborate, build, link. Nothing captured is frozen: what a
specialisation depends on is compared on every call.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..backends.runtime import link
from ..backends.runtime.arrays import as_array, describe, overlaps, prepare
from ..backends.runtime.tensor import Tensor
from ..lowering import settings
from ..lowering.diagnostic import CdError, CdTypeError, CdValueError, Diagnostic, Label
from ..lowering.ir.assignments import Assign, Procedure
from . import surface as s
from .build import build
from .checked import add_checks
from .elaborate.elaborate import elaborate
from .elaborate.inputs import ArraySpec, Spec, spec_of
from .elaborate.typed import Argument, Constant, Many, New, Return, Strided, Typed
from .elaborate.values import Path
from .parse import parse
from .source import read_source, scope_of, scope_of_namespace, source_from_text

Lookup = Callable[[str], object]


@dataclass(frozen=True)
class Specialisation:
    """One compiled form of a function, and why it was compiled."""

    typed: Typed
    procedure: Procedure
    routine: link.Routine
    captured: tuple[tuple[Path, Spec], ...]
    reason: str


class CdFunction:
    """A function under `@cd`. Call it; `explain(*args)` tells what it becomes for arguments."""

    def __init__(
        self, function: s.Function, lookup: Lookup, signature: inspect.Signature, name: str,
        doc: str | None, backend: str | None,
    ) -> None:  # fmt: skip
        self.surface = function
        self.__name__ = name
        self.__doc__ = doc
        self.__signature__ = signature
        self._lookup = lookup
        self._backend = backend
        self._statics: frozenset[str] = frozenset()
        self._known: dict[object, list[Specialisation]] = {}
        self._lock = threading.RLock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function; returns what it returns. Raises the `CdError` family."""
        try:
            arguments = self._bind(args, kwargs)
            return self._run(self._specialise(arguments), arguments)
        except CdError as problem:
            raise problem.with_traceback(None) from None

    def __get__(self, owner: object, kind: type | None = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __repr__(self) -> str:
        return f"<cd function {self.__name__}{self.__signature__}>"

    def __cd_function__(self) -> tuple[s.Function, Lookup]:
        """Return what another `@cd` function needs to inline this one."""
        return self.surface, self._lookup

    def on(self, backend: str) -> CdFunction:
        """Return the same function on another backend."""
        return CdFunction(
            self.surface, self._lookup, self.__signature__, self.__name__, self.__doc__, backend
        )

    def specialise(self, *args: Any, **kwargs: Any) -> Specialisation:
        """Return the compiled form for arguments, without running it."""
        return self._specialise(self._bind(args, kwargs))

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        params = self.surface.params
        if not kwargs and len(args) == len(params) and all(p.kind in _POSITIONAL for p in params):
            return {param.name: arg for param, arg in zip(params, args, strict=True)}
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as problem:
            message = f"`{self.__name__}`: {problem}"
            label = Label(self.surface.span)
            raise CdTypeError(Diagnostic("CD0436", message, (label,))) from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _specialise(self, arguments: Mapping[str, Any]) -> Specialisation:
        alias = _aliases(arguments)
        with self._lock:
            key = self._key(arguments, alias)
            for known in self._known.get(key, ()):
                if all(self._now(known, path) == spec for path, spec in known.captured):
                    return known
            made = self._make(arguments, alias)
            self._known.setdefault(self._key(arguments, alias), []).append(made)
            return made

    def _key(self, arguments: Mapping[str, Any], alias: Mapping[Path, Path]) -> object:
        specs = tuple(
            _input_spec(value, name in self._statics) for name, value in arguments.items()
        )
        return specs, tuple(alias.items()), self._backend, settings.current()

    def _make(self, arguments: Mapping[str, Any], alias: Mapping[Path, Path]) -> Specialisation:
        reason = self._reason(arguments)
        typed = elaborate(
            self.surface, arguments, _input_spec, self._lookup, alias, self._statics
        )
        self._statics |= typed.statics
        procedure = build(typed.procedure)
        if settings.current().checked:
            procedure = add_checks(procedure)
        routine = link.link(procedure, self._backend)
        captured = tuple((path, spec) for path, spec in typed.used.items() if path.captured)
        return Specialisation(typed, procedure, routine, captured, reason)

    def _reason(self, arguments: Mapping[str, Any]) -> str:
        if not self._known:
            return "the first call of this function"
        return "no specialisation so far fits these types, shapes, layouts and captured values"

    def _now(self, known: Specialisation, path: Path) -> Spec | None:
        try:
            value = self._find(known.typed, path, {})
        except (AttributeError, LookupError):
            return None
        return _input_spec(value, True)

    def _find(self, typed: Typed, path: Path, arguments: Mapping[str, Any]) -> Any:
        """Return the object that a path leads to now."""
        if not path.captured:
            value = arguments[path.root]
        elif path.root in typed.constants:
            value = typed.constants[path.root]
        else:
            prefix, _, name = path.root.rpartition(":")
            lookup = typed.roots[prefix + ":"] if prefix else self._lookup
            value = lookup(name)
        for step in path.steps:
            if isinstance(step, int):
                value = value[step]
            elif step.startswith("@"):
                value = value.array(step[1:])
            else:
                value = getattr(value, step)
        return value

    def _run(self, known: Specialisation, arguments: Mapping[str, Any]) -> Any:
        typed, procedure = known.typed, known.procedure
        given = [self._find(typed, path, arguments) for path in typed.passed]
        arrays: list[Any] = []
        after: list[Callable[[], None]] = []
        for value, path, parameter in zip(given, typed.passed, procedure.parameters, strict=True):
            if not parameter.node.shape and not isinstance(value, np.ndarray):
                arrays.append(np.asarray(value, parameter.node.dtype.numpy))
                continue
            array = as_array(value, str(path))
            if parameter.written and isinstance(value, list | tuple):
                raise _written_list(self.surface, path)
            ready, write_back = prepare(array, parameter.written, str(path))
            arrays.append(ready)
            if write_back is not None:
                after.append(write_back)
        _separate(arrays, known, self.surface)
        results = known.routine(arrays)
        for write_back in after:
            write_back()
        return self._returned(typed, typed.returns, results, arguments)

    def _returned(
        self, typed: Typed, returns: Return, results: Sequence[Any], arguments: Mapping[str, Any]
    ) -> Any:
        match returns:
            case Constant(value):
                return value
            case Argument(path, view):
                value = self._find(typed, path, arguments)
                if view is None:
                    return value
                return _viewed(as_array(value, str(path)), view)
            case New(number, view, kind):
                array = results[number]
                if kind is not None:
                    return array.item() if kind.weak else array[()]
                return array if view is None else _viewed(array, view)
            case Many(items, kind):
                parts = [self._returned(typed, item, results, arguments) for item in items]
                return parts if kind == "list" else tuple(parts)


_POSITIONAL = ("positional", "any")


def cd(function: Callable[..., Any] | None = None, *, backend: str | None = None) -> Any:
    """Return the function compiled: called like before, run as C (or on another backend).

    Use it as `@cd` or `@cd(backend="numpy")`. Raises CdSyntaxError where the source cannot be read
    or holds what the language does not admit; all such problems at once.
    """
    if function is None:
        return functools.partial(cd, backend=backend)
    try:
        surface = parse(read_source(function))
        scope = scope_of(function)
        signature = inspect.signature(function)
        return CdFunction(
            surface, scope.lookup, signature, getattr(function, "__name__", "lambda"),
            function.__doc__, backend,
        )  # fmt: skip
    except CdError as problem:
        raise problem.with_traceback(None) from None


def cd_from_source(
    text: str,
    globals: Mapping[str, object] | None = None,
    name: str = "<text>",
    backend: str | None = None,
) -> CdFunction:
    """Return the function that a text defines, compiled, for where no source can be read.

    `globals` are the names around it (none unless given; Python's builtins always), `name` is
    what errors call the text. Raises as `cd` does.
    """
    try:
        surface = parse(source_from_text(text, name))
        scope = scope_of_namespace(globals or {})
        signature = _signature(text, globals or {}, surface)
        return CdFunction(surface, scope.lookup, signature, surface.name, surface.doc, backend)
    except CdError as problem:
        raise problem.with_traceback(None) from None


def _signature(
    text: str, namespace: Mapping[str, object], surface: s.Function
) -> inspect.Signature:
    """Return the signature of a function text, default values evaluated in the namespace."""
    kinds = {
        "positional": inspect.Parameter.POSITIONAL_ONLY,
        "any": inspect.Parameter.POSITIONAL_OR_KEYWORD,
        "keyword": inspect.Parameter.KEYWORD_ONLY,
        "*": inspect.Parameter.VAR_POSITIONAL,
        "**": inspect.Parameter.VAR_KEYWORD,
    }
    found = []
    for param in surface.params:
        default: Any = inspect.Parameter.empty
        if param.default is not None:
            default = eval(param.default.span.text, dict(namespace))  # noqa: S307 - the user's own text
        found.append(inspect.Parameter(param.name, kinds[param.kind], default=default))
    return inspect.Signature(found)


def _input_spec(value: object, static: bool) -> Spec:
    return spec_of(value, _array_spec, static, _is_tensor)


def _is_tensor(value: object) -> bool:
    return isinstance(value, Tensor)


def _array_spec(value: object) -> ArraySpec | None:
    """Return the layout that code is compiled for, None for what is no array."""
    if not _looks_like_array(value):
        return None
    layout = describe(value)
    packed = not (layout.aligned and layout.native)
    return ArraySpec(layout.dtype, layout.shape, None if packed else layout.strides)


def _looks_like_array(value: object) -> bool:
    if isinstance(value, np.ndarray | list | memoryview | bytearray):
        return True
    names = ("__array_interface__", "__array_struct__", "__dlpack__", "__array__")
    return any(hasattr(value, name) for name in names)


def _aliases(arguments: Mapping[str, Any]) -> dict[Path, Path]:
    """Return arguments that are the same view of the same memory as an earlier one."""
    arrays = [(Path(name), value) for name, value in arguments.items() if isinstance(value, np.ndarray)]
    if len(arrays) < 2:
        return {}
    return {
        arrays[pair.second][0]: arrays[pair.first][0]
        for pair in reversed(overlaps([array for _, array in arrays]))
        if pair.identical
    }


def _separate(arrays: list[Any], known: Specialisation, function: s.Function) -> None:
    """Copy read arrays that overlap the one that is written, where that is what NumPy does.

    CdValueError CD0708 where the result would depend on the order of element writes.
    """
    parameters = known.procedure.parameters
    if not any(parameter.written for parameter in parameters):
        return
    for pair in overlaps(arrays):
        one, two = pair.first, pair.second
        written = parameters[one].written, parameters[two].written
        if not any(written):
            continue
        if not all(written) and _is_one_assignment(known.procedure):
            spare = two if written[0] else one
            arrays[spare] = arrays[spare].copy()
            arrays[spare] = _relaid(arrays[spare], parameters[spare].node.strides)
            continue
        names = [str(known.typed.passed[n]) for n in (one, two)]
        raise CdValueError(
            Diagnostic(
                "CD0708", f"arguments `{names[0]}` and `{names[1]}` share memory, and one is written",
                (Label(function.span),),
                helps=(f"pass a copy: `{names[1]}.copy()`",),
            )
        )  # fmt: skip


def _is_one_assignment(procedure: Procedure) -> bool:
    return len(procedure.body) == 1 and isinstance(procedure.body[0], Assign)


def _relaid(array: Any, strides: tuple[int, ...] | None) -> Any:
    """Return a copy of an array with given element strides (those it was compiled for)."""
    if strides is None or not array.size:
        return np.ascontiguousarray(array).reshape(array.shape)
    low = sum(min(0, (n - 1) * step) for n, step in zip(array.shape, strides, strict=True))
    high = sum(max(0, (n - 1) * step) for n, step in zip(array.shape, strides, strict=True))
    room = np.empty(high - low + 1, array.dtype)
    steps = tuple(step * array.itemsize for step in strides)
    view = np.lib.stride_tricks.as_strided(room[-low:], array.shape, steps)
    view[...] = array
    return view


def _viewed(array: Any, view: Strided) -> Any:
    """Return a view of an array given by offset and strides in elements of the array's layout."""
    size = array.itemsize
    if not array.size:
        return array.reshape(view.shape)
    strides = tuple(step * size for step in view.strides)
    base = _at_offset(array, view.offset)
    found = np.lib.stride_tricks.as_strided(base, view.shape, strides)
    if not array.flags.writeable:
        found.flags.writeable = False
    return found


def _at_offset(array: Any, offset: int) -> Any:
    """Return a one-element view of an array at an offset in elements from its first element."""
    rest = offset * array.itemsize
    order = sorted(range(array.ndim), key=lambda n: -abs(array.strides[n]))
    found: dict[int, int] = {}
    for n in order:
        step = array.strides[n]
        position = 0 if not step else min(max(rest // step, 0), array.shape[n] - 1)
        found[n] = position
        rest -= position * step
    index = [slice(found[n], found[n] + 1) for n in range(array.ndim)]
    return array[tuple(index)]


def _written_list(function: s.Function, path: Path) -> CdTypeError:
    return CdTypeError(
        Diagnostic(
            "CD0707", f"`{path}` is written, and a list cannot be written in place",
            (Label(function.span),),
            helps=(f"pass an array: `np.array({path})`",),
        )
    )  # fmt: skip
