"""The decorator `@cd`: functions that are compiled just in time, specialized for each signature.

A call looks up the specialization for the types, shapes and layouts of its arguments and for the
captured values, or compiles one: parse once, elaborate, normalize, link. No captured value is
frozen: guards compare all that a specialization depends on at every call.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, GenericAlias, MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    overload,
)

from ...backends.cache.folders import descriptor_shortage
from ...backends.device_arrays.protocols import may_be_device_array
from ...backends.runtime.state import RUNTIME
from ...base import float_modes
from ...base.cached_property import cached_property
from ...base.diagnostic import (
    CdBackendError,
    CdError,
    CdShapeError,
    CdTypeError,
    Diagnostic,
    Label,
)
from ...base.garbage_collector import gc_paused
from ...base.lazy_import import LazyModule, lazy_modules, load_module
from ...base.process_state import State, register
from ..source import function_source
from ..source.definition import Definition, call_text, require_compilable, text_signature

if TYPE_CHECKING:
    from ...backends.call_entry import CacheEntry
    from ...backends.device_arrays import foreign_arrays
    from ...backends.runtime.routine import Compiled
    from ...backends.runtime.tensor import Tensor
    from ...lowering.ir.assignments import Procedure
    from ..dispatch import execute, fast_path, persist, persistent_cache
    from ..explain import explain
    from ..source import surface as s
    from ..specialize import guards, specialization
    from ..specialize.guards import CallShape
    from ..specialize.specialization import SpecializationCache
    from ..specialize.variants import Lookup, Match, Specialization
    from ..tracing import log
    from . import ahead_of_time, pickling
else:
    ahead_of_time, pickling = lazy_modules(__package__, ".ahead_of_time", ".pickling")
    execute, persist, persistent_cache, fast_path = lazy_modules(
        __package__, "..dispatch.execute", "..dispatch.persist", "..dispatch.persistent_cache",
        "..dispatch.fast_path",
    )  # fmt: skip
    explain, guards, log = lazy_modules(
        __package__, "..explain.explain", "..specialize.guards", "..tracing.log"
    )
    foreign_arrays = LazyModule("...backends.device_arrays.foreign_arrays", __package__)
    specialization = LazyModule("..specialize.specialization", __package__)

P = ParamSpec("P")
Q = ParamSpec("Q")
T = TypeVar("T")
Owner = TypeVar("Owner")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

_MAX_PLANS = 8
"""The most fast-path entries of a function; with more kinds of calls only some are added."""


def _with_user_errors(method: Callable[P, T]) -> Callable[P, T]:
    """Return a method that runs under the default float modes and raises errors for users."""

    @functools.wraps(method)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            if float_modes.are_default():
                return method(*args, **kwargs)
            with float_modes.default():
                return method(*args, **kwargs)
        except CdError as problem:
            raise problem.with_traceback(None) from None
        except Exception as problem:
            name = getattr(args[0], "__name__", "a function")
            if sys.meta_path is None:  # modules and `open` are gone at finalization
                raise _shutdown_error(name) from None
            if _is_out_of_memory(problem):
                raise function_source.out_of_memory_error(name) from None
            if isinstance(problem, OSError) and (short := descriptor_shortage(problem)) is not None:
                raise short from problem.__cause__
            raise

    return wrapped


def _is_out_of_memory(problem: Exception) -> bool:
    """Whether an exception means that memory ran out: of Python, its module loader or interpreter.

    CPython raises SystemError where it cannot allocate the frame of a call.
    """
    match problem:
        case MemoryError():
            return True
        case ImportError():
            return "failed to map" in str(problem)
        case SystemError():
            return str(problem) == "error return without exception set"
    return False


class _SlowPath:
    """The slow path of calls, in Python, until the compiled fast path is available."""

    __slots__ = ()

    @_with_user_errors
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the function; returns what it returns. Raises the `CdError` family."""
        arguments = self._bind(args, kwargs)
        recorder = RUNTIME.planned()
        if recorder and (taken := recorder.function(self, arguments, self._backend)):
            return taken[0]
        match = self._cached_match(arguments)
        if match is None:
            if self._load_persistent(arguments, len(args), tuple(kwargs)):
                return self(*args, **kwargs)
            match = self._find_match(arguments)
        try:
            result = execute.run(match, arguments)
        except CdShapeError as problem:
            alone = self._forms.alone(match, arguments) if problem.code == "CD0301" else None
            if alone is None:
                raise
            return execute.run(alone, arguments)
        if match.is_direct and not sys.is_finalizing():  # `open` is gone at finalization
            self._add_fast_path(match, arguments, len(args), tuple(kwargs))
        return result


def _shutdown_error(name: str) -> CdError:
    """Return the error (CD0829) of a call that has to compile during interpreter shutdown."""
    message = f"`{name}` is called while the interpreter ends, and cannot be compiled any more"
    helps = (
        "call it once with such arguments before the end: what is compiled by then still runs",
        "or do it in a function that `atexit.register` is given",
    )
    return CdBackendError(Diagnostic("CD0829", message, helps=helps))


if TYPE_CHECKING:

    class _TypedCall(_SlowPath, Generic[P, T]):
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T: ...

    class _TypedPartial(functools.partial[T], Generic[P, T]):
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T: ...
else:  # bases whose parameters and results only type checkers know
    _TypedCall = {(P, T): _SlowPath}
    _TypedPartial = {(P, T): functools.partial}


def _function_property(name: str) -> Any:
    """Return a property that reads and writes the attribute of the Python function.

    It raises AttributeError for a function that a text defines.
    """

    def get_value(self: Any) -> Any:
        return getattr(self._python_function(name), name)

    def set_value(self: Any, value: object) -> None:
        setattr(self._python_function(name), name, value)

    return property(get_value, set_value)


class CdFunction(_TypedCall[P, T]):
    """A function under `@cd`. Call it; `explain(*args)` shows its code for given arguments.

    Type checkers know it as `CdFunction[P, T]`: its parameters and its result, as written.
    """

    _call = _SlowPath.__call__
    __class_getitem__: Any = classmethod(GenericAlias)

    def __init__(
        self, definition: Definition, signature: inspect.Signature, backend: str | None = None
    ) -> None:
        if backend is not None:
            RUNTIME.require(backend)
        self.__signature__ = signature
        self._definition, self._backend = definition, backend
        if definition.function is None:
            self.__name__ = self.__qualname__ = definition.surface.name
            self.__doc__ = definition.surface.doc
        else:
            functools.update_wrapper(self, definition.function, updated=())
        self._on_backends: dict[str, CdFunction[P, T]] = {}
        parameters = signature.parameters.values()
        self._names = tuple(signature.parameters) if _are_plain(parameters) else None
        self._plans: list[CacheEntry] = []
        """The fast-path entries of earlier calls, the latest first; see `fast_path`."""
        self._slow_calls = 0
        self._persistent = persistent_cache.PersistentEntries(definition, backend)

    @property
    def definition(self) -> Definition:
        """The definition of the function, renewed where its code or defaults were replaced."""
        parts = self._definition.parts
        if parts is not None and not parts.are_current():
            self._reread()
        return self._definition

    __code__, __defaults__ = _function_property("__code__"), _function_property("__defaults__")
    __kwdefaults__ = _function_property("__kwdefaults__")

    def _python_function(self, name: str) -> Any:
        if self._definition.parts is None:
            raise AttributeError(f"`{self.__name__}` is a text's function, and has no `{name}`")
        return self._definition.parts.function

    def _reread(self) -> None:
        """Reread the current Python function, and drop all specializations.

        Raises as `cd` does.
        """
        function = self._definition.function
        assert function is not None, "a text is not replaced"
        renewed = _define(function, self._backend)
        self.__dict__.pop("_forms", None)
        self.__dict__.update(renewed.__dict__)

    @property
    def surface(self) -> s.Function:
        """The surface syntax of the function."""
        return self.definition.surface

    @gc_paused()
    def _find_match(self, arguments: dict[str, Any]) -> Match:
        """Return the specialization for arguments, compiled if there is none."""
        return self._forms.find(arguments)

    @cached_property
    def _forms(self) -> SpecializationCache:
        """The specialization cache, created lazily."""
        definition = self.definition
        lookup = definition.around.lookup
        return specialization.SpecializationCache(
            definition.surface, lookup, self._backend, self._plans
        )

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(
        self: CdFunction[Concatenate[Owner, Q], T], owner: Owner, kind: type | None = None
    ) -> BoundFunction[Q, T]: ...
    def __get__(self, owner: object, kind: type | None = None) -> Any:
        return self if owner is None else BoundFunction(self, owner)

    def __repr__(self) -> str:
        return f"<cd function {self.__name__}{self.__signature__}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        if pickling.is_named(self):
            return self.__qualname__  # pickled by name, as functions are
        begin = self.__module__, self.__qualname__, pickling.digest(self)
        return _restored, begin, pickling.pickle_state(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "definition" not in self.__dict__:  # it is a new object, not an existing function
            pickling.restore_state(self, state)

    def __deepcopy__(self, memo: object = None) -> Self:
        return self

    __copy__ = __deepcopy__

    def __cd_function__(self) -> tuple[s.Function, Lookup]:
        """Return surface and scope, with which another `@cd` function inlines this one."""
        return self.surface, self.definition.around.lookup

    def share_state(self, source: CdFunction[P, T]) -> None:
        """Share the state of another function, with all of its specializations."""
        self.__dict__ = source.__dict__

    def on(self, backend: str) -> CdFunction[P, T]:
        """Return the same function on another backend; the same object every time."""
        if backend not in self._on_backends:
            function: CdFunction[P, T] = CdFunction(self.definition, self.__signature__, backend)
            self._on_backends.setdefault(backend, function)
        return self._on_backends[backend]

    @_with_user_errors
    def explain(self, *args: P.args, **kwargs: P.kwargs) -> explain.Explanation:
        """Return the explanation of a call with these arguments: as text, as a page, by parts.

        Nothing is run, and later calls are not affected. Raises what compiling such a call raises.
        """
        arguments = self._bind(args, kwargs)
        return explain.build_explanation(*self._forms.peek(arguments), arguments)

    def jax(self) -> Any:
        """Return the function for JAX: see `frameworks.jax_function`."""
        return load_module(".frameworks", __package__).jax_function(self)

    def torch(self) -> Any:
        """Return the function for PyTorch: see `frameworks.torch_function`."""
        return load_module(".frameworks", __package__).torch_function(self)

    @property
    def derivative_rules(self) -> Any:
        """The derivatives that the user wrote, None where there are none."""
        return self.definition.derivative_rules

    @property
    def rules_identity(self) -> object:
        """Another object after each change of the derivatives that the user wrote."""
        return self.definition.rules_identity

    def vjp_rule(self, rule: Any = None, wrt: str | Iterable[str] | None = None) -> Any:
        """Give the function a derivative: a decorator, see `derivative_rules.vjp_rule`."""
        return load_module(".derivative_rules", __package__).vjp_rule(self, rule, wrt)

    def jvp_rule(self, rule: Any = None, wrt: str | Iterable[str] | None = None) -> Any:
        """Give the function a derivative: a decorator, see `derivative_rules.jvp_rule`."""
        return load_module(".derivative_rules", __package__).jvp_rule(self, rule, wrt)

    @_with_user_errors
    def procedure(self, *args: P.args, **kwargs: P.kwargs) -> Procedure:
        """Return the elaborated assignments of a call with these arguments, without compiling."""
        return self._forms.peek(self._bind(args, kwargs), compiled=False)[0].procedure

    @_with_user_errors
    def compile(
        self,
        *args: Any,
        name: str = "",
        inline: Mapping[Tensor, Compiled] | None = None,
        **kwargs: Any,
    ) -> Compiled:
        """Return the function compiled for tensors, to be linked into contexts of streams.

        Tensors are bound; arrays and numbers only determine the signature of calls of the routine.
        Its default `name` is the function's name and its comments, `step_smooth_then_scale`.
        `inline={t: first}` recomputes the virtual tensor `t` as the function of `first` does.
        Raises what compiling a call raises, except for errors of a backend, and CdTypeError CD0855
        or CD0856 where `inline` is wrong or `t` cannot be recomputed.
        """
        return self.compile_bound(self._bind(args, kwargs), name, inline)

    def compile_bound(
        self,
        arguments: dict[str, Any],
        name: str = "",
        inline: Mapping[Tensor, Compiled] | None = None,
    ) -> Compiled:
        """Return what `compile` returns, for arguments by the names of parameters."""
        specialization = self._forms.for_linking(arguments)
        return ahead_of_time.compile_for_tensors(
            specialization,
            arguments,
            name or ahead_of_time.default_name(self.__name__, specialization),
            inline,
        )

    def specialise(self, *args: P.args, **kwargs: P.kwargs) -> Specialization:
        """Return the specialization for arguments, compiled and cached as by a call; no run."""
        return self.matched(*args, **kwargs)[0].specialization

    @_with_user_errors
    def matched(self, *args: P.args, **kwargs: P.kwargs) -> tuple[Match, dict[str, Any]]:
        """Return the match with arguments, compiled if needed, and the bound arguments."""
        arguments = self._bind(args, kwargs)
        return self._forms.find(arguments), arguments

    def _cached_match(self, arguments: dict[str, Any]) -> Match | None:
        """Return the cached match of a call, None where it may have to be compiled."""
        cache: SpecializationCache | None = self.__dict__.get("_forms")
        return None if cache is None else cache.cached(arguments)

    def _load_persistent(
        self, arguments: dict[str, Any], positional: int, named: tuple[str, ...]
    ) -> bool:
        """Whether the persistent cache has an entry for calls like this one, which is installed."""
        entry = self._persistent.find(arguments, self._call_shape(positional, named))
        if entry is None:
            return False
        library = RUNTIME.load_caller(wait=False)
        self._use_fast_caller(None if library is None else library.caller)
        self._plans.insert(0, entry)
        return True

    def _add_fast_path(
        self, match: Match, arguments: dict[str, Any], positional: int, named: tuple[str, ...]
    ) -> None:
        """Add a fast-path entry for calls like this one, where that is supported.

        While something watches every call there is none: what is learned would be of no use.
        """
        if RUNTIME.watching and not match.fresh:
            return
        self._slow_calls += 1
        if (
            self._slow_calls > _MAX_PLANS
            and self._slow_calls % (2 * _MAX_PLANS)
            and not match.fresh
        ):
            return
        loader = fast_path.fast_path_loader(match)
        if loader is None or (loader.caller is None and not loader.is_compiling):
            return
        lookup = self.definition.around.lookup
        program = fast_path.build_guards(match, arguments, lookup)
        if program is not None and loader.caller is not None:
            self._use_fast_caller(loader.caller)
            entry = fast_path.pack_program(match, self._call_shape(positional, named), program)
            self._forms.keep(entry, match, arguments, _MAX_PLANS)
        if match.fresh:
            persist.write_entry(match, arguments, program, self.definition, self._backend)

    def _call_shape(self, positional: int, named: tuple[str, ...]) -> CallShape:
        params, parts = self.__signature__.parameters, self._definition.parts
        defaults = {name: params[name].default for name in params}
        return guards.CallShape(positional, named, defaults, parts)

    def _wrap_foreign(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return arguments with device arrays of other packages wrapped, once per call."""
        for name, value in arguments.items():
            if may_be_device_array(value):
                try:
                    arguments[name] = foreign_arrays.as_placed(value, name) or value
                except CdTypeError as problem:
                    raise specialization.with_parameter_label(problem, self.surface, name) from None
        return arguments

    def _use_fast_caller(self, caller: type | None) -> None:
        """Make the class of the compiled library the base of `CdFunction`: it handles calls."""
        if caller is not None and CdFunction.__bases__ != (caller,):
            CdFunction.__bases__ = (caller,)

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        _ = self.definition  # renews the signature
        if not kwargs and self._names is not None and len(args) == len(self._names):
            return self._wrap_foreign(dict(zip(self._names, args, strict=True)))
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as problem:
            message = f"`{self.__name__}` is called with the wrong arguments: {problem}"
            label = Label(self.surface.span, f"it takes {self.__signature__}")
            text = f"{self.__name__}({call_text(self.__signature__)})"
            helps = (f"call it as its `def` line says: `{text}`",)
            raise CdTypeError(Diagnostic("CD0436", message, (label,), (), helps)) from None
        bound.apply_defaults()
        return self._wrap_foreign(dict(bound.arguments))


def _restored(module: str, qualname: str, digest: str) -> CdFunction[..., Any]:
    """Return the function with this name and text in this process, else an empty one, which
    `__setstate__` fills."""
    existing = pickling.find_by_name(module, qualname)
    if isinstance(existing, CdFunction) and pickling.digest(existing) == digest:
        return existing
    return CdFunction.__new__(CdFunction)


class BoundFunction(_TypedPartial[P, T]):
    """A `@cd` function bound to an object, its first argument."""

    @property
    def __self__(self) -> object:
        return self.args[0]

    @property
    def __func__(self) -> Any:
        return self.func

    def explain(self, *args: P.args, **kwargs: P.kwargs) -> explain.Explanation:
        """Return the explanation of a call; see `CdFunction.explain`."""
        explanation: explain.Explanation = self.__func__.explain(*self.args, *args, **kwargs)
        return explanation

    def procedure(self, *args: Any, **kwargs: Any) -> Procedure:
        """Return the assignments of a call; see `CdFunction.procedure`."""
        procedure: Procedure = self.__func__.procedure(*self.args, *args, **kwargs)
        return procedure

    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        """Return the function compiled for tensors; see `CdFunction.compile`."""
        compiled: Compiled = self.__func__.compile(*self.args, *args, **kwargs)
        return compiled

    def matched(self, *args: Any, **kwargs: Any) -> tuple[Match, dict[str, Any]]:
        """Return the match with arguments; see `CdFunction.matched`."""
        match: tuple[Match, dict[str, Any]] = self.__func__.matched(*self.args, *args, **kwargs)
        return match

    def on(self, backend: str) -> BoundFunction[P, T]:
        """Return the bound function on another backend."""
        return BoundFunction(self.__func__.on(backend), *self.args)


class _Decorator(Protocol):
    """The type of `cd(backend=...)`, a decorator."""

    def __call__(self, function: Callable[P, T], /) -> CdFunction[P, T]: ...


@overload
def cd(function: Callable[P, T], *, backend: str | None = None) -> CdFunction[P, T]: ...
@overload
def cd(function: None = None, *, backend: str | None = None) -> _Decorator: ...
def cd(function: Any = None, *, backend: str | None = None) -> Any:
    """Return the function compiled: called like before, run as C (or on another backend).

    Use it as `@cd` or `@cd(backend="numpy")`. Raises CdSyntaxError where the source cannot be read
    or has unsupported constructs, all at once; CdBackendError CD0801 for an unknown backend.
    """
    if function is None:
        if backend is not None:
            RUNTIME.require(backend)
        return functools.partial(cd, backend=backend)
    if isinstance(function, staticmethod | classmethod):  # as if `@cd` were below it
        return type(function)(cd(function.__func__, backend=backend))
    if isinstance(function, MethodType):
        return BoundFunction(cd(function.__func__, backend=backend), function.__self__)
    return _define(function, backend)


@_with_user_errors
def _define(function: Callable[P, T], backend: str | None) -> CdFunction[P, T]:
    definition = Definition(function_source.scope_of(function), function)
    _register_reloader()
    if not persistent_cache.was_parsed_before(definition):
        _ = definition.surface  # raises errors of the source now
    is_plain = isinstance(function, FunctionType)
    signature = inspect.signature(function, follow_wrapped=not is_plain)
    return CdFunction(definition, signature, backend)


def _register_reloader() -> None:
    """Register with IPython's `%autoreload`, so that it updates imported functions in place."""
    rules = getattr(sys.modules.get("IPython.extensions.autoreload"), "UPDATE_RULES", None)
    if isinstance(rules, list) and not any(rule == _RELOAD_RULE for rule in rules):
        rules.append(_RELOAD_RULE)


_RELOAD_RULE = (
    lambda old, new: isinstance(old, CdFunction) and isinstance(new, CdFunction),
    lambda old, new: old.share_state(new),
)
"""The update rule for autoreload: a predicate, and the action."""


@_with_user_errors
def cd_from_source(
    text: str,
    globals: Mapping[str, object] | None = None,
    name: str = "<text>",
    backend: str | None = None,
) -> CdFunction[..., Any]:
    """Return the compiled function that a text defines, where no source file can be read.

    `globals` are its global names (none by default; builtins always), `name` is the name of the
    text in errors. Raises as `cd` does.
    """
    namespace = {} if globals is None else globals  # by reference: its content may change
    definition = Definition(function_source.scope_of_namespace(namespace))
    definition.text = function_source.source_from_text(text, name)
    _ = definition.surface
    require_compilable(definition.text)
    return CdFunction(definition, text_signature(namespace, definition.surface), backend)


def _are_plain(params: Iterable[inspect.Parameter]) -> bool:
    return all(param.kind in _POSITIONAL for param in params)


RUNTIME.logger = lambda: log.logger()
register(
    lambda: State(
        name="the base class of functions under `@cd`: the fast path",
        owner=__name__,
        holders=("CdFunction.__bases__",),
        lock="one assignment; another compiled library replaces it",
    )
)
