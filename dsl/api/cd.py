"""`@cd`: a function that is read, compiled for its arguments, and called like any other.

A call finds the form for its arguments' types, shapes and layouts and for the values it captures,
or makes one: parse once, elaborate, build, link. Nothing captured is frozen: what a form depends
on is compared on every call.
"""

from __future__ import annotations

import ast
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
from ...backends.gpu.protocols import may_be_device_array
from ...backends.runtime.state import RUNTIME, Recorder
from ...base import float_modes
from ...base.cached_property import cached_property
from ...base.diagnostic import (
    CdBackendError,
    CdError,
    CdShapeError,
    CdSyntaxError,
    CdTypeError,
    Diagnostic,
    Label,
    Span,
)
from ...base.garbage_collector import gc_paused
from ...base.lazy_import import LazyModule, lazy_modules
from ..source import function_source
from ..source.definition import Definition

if TYPE_CHECKING:
    from ...backends.cc.fast_call import CacheEntry
    from ...backends.gpu import foreign_arrays
    from ...backends.runtime.routine import Compiled
    from ...backends.runtime.tensor import Tensor
    from ...lowering.ir.assignments import Procedure
    from ..dispatch import execute, persist, persistent_cache
    from ..dispatch import fast_path as plan
    from ..explain import explain
    from ..source import surface as s
    from ..specialize import guards, specialization
    from ..specialize.guards import Form
    from ..specialize.specialization import Specialisations
    from ..specialize.variants import Lookup, Match, Specialisation
    from ..tracing import log
    from . import ahead_of_time, pickling
else:
    ahead_of_time, pickling = lazy_modules(__package__, ".ahead_of_time", ".pickling")
    execute, persist, persistent_cache, plan = lazy_modules(
        __package__, "..dispatch.execute", "..dispatch.persist", "..dispatch.persistent_cache",
        "..dispatch.fast_path",
    )  # fmt: skip
    explain, guards, log = lazy_modules(
        __package__, "..explain.explain", "..specialize.guards", "..tracing.log"
    )
    foreign_arrays = LazyModule("...backends.gpu.foreign_arrays", __package__)
    specialization = LazyModule("..specialize.specialization", __package__)

P = ParamSpec("P")
Q = ParamSpec("Q")
T = TypeVar("T")
Owner = TypeVar("Owner")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


_PLANS = 8
"""How many short ways a function keeps; one that is called in more ways learns some of them."""


def _told(method: Callable[P, T]) -> Callable[P, T]:
    """Return a method of a function that raises what users are told, under the default modes."""

    @functools.wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            if float_modes.are_default():
                return method(*args, **kwargs)
            with float_modes.default():
                return method(*args, **kwargs)
        except CdError as problem:
            raise problem.with_traceback(None) from None
        except Exception as problem:
            name = getattr(args[0], "__name__", "a function")
            if sys.meta_path is None:  # modules are gone, and `open`
                raise _too_late(name) from None
            if _lacks_memory(problem):
                raise function_source.no_memory(name) from None
            if isinstance(problem, OSError) and (short := descriptor_shortage(problem)) is not None:
                raise short from problem.__cause__
            raise

    return called


def _lacks_memory(problem: Exception) -> bool:
    """Whether memory is short: as Python, its loader of modules, or its interpreter say so.

    CPython raises no MemoryError where it has no room for the frame of a call.
    """
    match problem:
        case MemoryError():
            return True
        case ImportError():
            return "failed to map" in str(problem)
        case SystemError():
            return str(problem) == "error return without exception set"
    return False


class _LongWay:
    """How a function is called as long as nothing compiled compares arguments: by Python alone."""

    __slots__ = ()

    @_told
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the function; returns what it returns. Raises the `CdError` family."""
        arguments = self._bind(args, kwargs)
        match = self._known(arguments)
        if match is None:
            if self._is_found(arguments, len(args), tuple(kwargs)):
                return self(*args, **kwargs)
            match = self._made(arguments)
        try:
            result = execute.run(match, arguments)
        except CdShapeError as problem:
            alone = self._forms.alone(match, arguments) if problem.code == "CD0301" else None
            if alone is None:
                raise
            return execute.run(alone, arguments)
        if match.is_direct and not sys.is_finalizing():  # an interpreter that ends lacks `open`
            self._learn(match, arguments, len(args), tuple(kwargs))
        return result


def _too_late(name: str) -> CdError:
    """Return the error of a call from a finalizer for which an interpreter that ends lacks much."""
    message = f"`{name}` is called while the interpreter ends, and cannot be compiled any more"
    helps = (
        "call it once with such arguments before the end: what is compiled by then still runs",
        "or do it in a function that `atexit.register` is given",
    )
    return CdBackendError(Diagnostic("CD0829", message, helps=helps))


if TYPE_CHECKING:

    class _Called(_LongWay, Generic[P, T]):
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T: ...

    class _Part(functools.partial[T], Generic[P, T]):
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T: ...
else:  # the bases of classes that type checkers know the parameters and the result of
    _Called = {(P, T): _LongWay}
    _Part = {(P, T): functools.partial}


def _of_function(name: str) -> Any:
    """Return an attribute that is the Python function's own: what is assigned holds from then on.

    AttributeError for a function that a text defines.
    """

    def get(self: Any) -> Any:
        return getattr(self._plain(name), name)

    def put(self: Any, value: object) -> None:
        setattr(self._plain(name), name, value)

    return property(get, put)


class CdFunction(_Called[P, T]):
    """A function under `@cd`. Call it; `explain(*args)` tells what it becomes for arguments.

    Type checkers know it as `CdFunction[P, T]`: its parameters and what it returns, as written.
    """

    _call = _LongWay.__call__
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
        self._elsewhere: dict[str, CdFunction[P, T]] = {}
        params = signature.parameters.values()
        self._names = tuple(signature.parameters) if _are_plain(params) else None
        self._plans: list[CacheEntry] = []
        """The short ways of calls that were made, the latest first; see `plan`."""
        self._learned = 0
        self._front = persistent_cache.Front(definition, backend)

    @property
    def definition(self) -> Definition:
        """Where the function was defined: that of now, where its code or defaults were replaced."""
        parts = self._definition.parts
        if parts is not None and not parts.are_current():
            self._renew()
        return self._definition

    __code__, __defaults__ = _of_function("__code__"), _of_function("__defaults__")
    __kwdefaults__ = _of_function("__kwdefaults__")

    def _plain(self, name: str) -> FunctionType:
        if self._definition.parts is None:
            raise AttributeError(f"`{self.__name__}` is a text's function, and has no `{name}`")
        function: FunctionType = self._definition.parts.function
        return function

    def _renew(self) -> None:
        """Be the function that Python runs by now, read again, with nothing compiled.

        Raises as `cd` does.
        """
        function = self._definition.function
        assert function is not None, "a text is not replaced"
        made = _defined(function, self._backend)
        self.__dict__.pop("_forms", None)
        self.__dict__.update(made.__dict__)

    @property
    def surface(self) -> s.Function:
        """The function as the language has it."""
        return self.definition.surface

    @gc_paused()
    def _made(self, arguments: dict[str, Any]) -> Match:
        """Return the form for arguments, compiled where there is none."""
        return self._forms.find(arguments)

    @cached_property
    def _forms(self) -> Specialisations:
        """What it was compiled to, made when something is compiled."""
        definition = self.definition
        lookup = definition.around.lookup
        return specialization.Specialisations(
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
        return _restored, begin, pickling.state_of(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "definition" not in self.__dict__:  # it is not the one that is here anyway
            pickling.fill(self, state)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __cd_function__(self) -> tuple[s.Function, Lookup]:
        """Return what another `@cd` function needs to inline this one."""
        return self.surface, self.definition.around.lookup

    def become(self, other: CdFunction[P, T]) -> None:
        """Be the same function as another one from now on, with all that it was compiled to."""
        self.__dict__ = other.__dict__

    def on(self, backend: str) -> CdFunction[P, T]:
        """Return the same function on another backend; the same object every time."""
        if backend not in self._elsewhere:
            made: CdFunction[P, T] = CdFunction(self.definition, self.__signature__, backend)
            self._elsewhere.setdefault(backend, made)
        return self._elsewhere[backend]

    @_told
    def explain(self, *args: P.args, **kwargs: P.kwargs) -> explain.Explanation:
        """Return what a call with these arguments becomes and why: text, a page, and its parts.

        Nothing is run, and no later call is decided differently for having asked. Raises what
        compiling such a call raises.
        """
        arguments = self._bind(args, kwargs)
        return explain.explanation(*self._forms.peek(arguments), arguments)

    @_told
    def procedure(self, *args: P.args, **kwargs: P.kwargs) -> Procedure:
        """Return the assignments that a call with these arguments means; nothing is compiled."""
        return self._forms.peek(self._bind(args, kwargs), compiled=False)[0].procedure

    @_told
    def compile(
        self,
        *args: Any,
        name: str = "",
        inline: Mapping[Tensor, Compiled] | None = None,
        **kwargs: Any,
    ) -> Compiled:
        """Return the function compiled for tensors, to be linked into contexts of streams.

        Tensors are bound; arrays and numbers only say what each call of a routine will give. It has
        the function's name and its comments, `step_smooth_then_scale`, where no `name` is given.
        `inline={t: first}` computes the virtual tensor `t` again, as what `first` is compiled of
        does. Raises what compiling a call raises, except for what only a backend finds, and
        CdTypeError CD0855 or CD0856 where `inline` is wrong or `t` cannot be computed again.
        """
        arguments = self._bind(args, kwargs)
        form = self._forms.apart(arguments)
        return ahead_of_time.compiled(
            form, arguments, name or ahead_of_time.name_of(self.__name__, form), inline
        )

    def specialise(self, *args: P.args, **kwargs: P.kwargs) -> Specialisation:
        """Return the form for arguments, compiled and kept as by a call, without running it."""
        return self.matched(*args, **kwargs)[0].known

    @_told
    def matched(self, *args: P.args, **kwargs: P.kwargs) -> tuple[Match, dict[str, Any]]:
        """Return the form for arguments as `specialise` does, and what fits it of them."""
        arguments = self._bind(args, kwargs)
        return self._forms.find(arguments), arguments

    def _known(self, arguments: dict[str, Any]) -> Match | None:
        """Return the form for a call, None where it may have to be made."""
        forms: Specialisations | None = self.__dict__.get("_forms")
        return None if forms is None else forms.known(arguments)

    def _is_found(self, arguments: dict[str, Any], positional: int, named: tuple[str, ...]) -> bool:
        """Whether calls like this one go the short way from now on, as an entry on disk says."""
        plan = self._front.find(arguments, self._form(positional, named))
        if plan is None:
            return False
        self._go_short(persistent_cache.backend().short_way.caller)
        self._plans.insert(0, plan)
        return True

    def _learn(
        self, match: Match, arguments: dict[str, Any], positional: int, named: tuple[str, ...]
    ) -> None:
        """Have calls like this one go the short way from now on, where there is one.

        While something watches every call, none goes it: what is learned anew would be of no use.
        """
        if RUNTIME.watching and not match.fresh:
            return
        self._learned += 1
        if self._learned > _PLANS and self._learned % (2 * _PLANS) and not match.fresh:
            return
        way = plan.short_way(match)
        if way is None or (way.caller is None and not way.is_compiling):
            return
        lookup = self.definition.around.lookup
        found = plan.recipe_of(match, arguments, lookup)
        if found is not None and way.caller is not None:
            self._go_short(way.caller)
            made = plan.plan_of(match, self._form(positional, named), found)
            self._forms.keep(made, match, arguments, _PLANS)
        if match.fresh:
            persist.remember(match, arguments, found, self.definition, self._backend)

    def _form(self, positional: int, named: tuple[str, ...]) -> Form:
        params, parts = self.__signature__.parameters, self._definition.parts
        defaults = {name: params[name].default for name in params}
        return guards.Form(positional, named, defaults, parts)

    def _adopted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return arguments with the arrays of other packages on devices: asked for once."""
        for name, value in arguments.items():
            if may_be_device_array(value):
                try:
                    arguments[name] = foreign_arrays.as_placed(value, name) or value
                except CdTypeError as problem:
                    raise specialization.placed(problem, self.surface, name) from None
        return arguments

    def _go_short(self, caller: type | None) -> None:
        """Have all functions called by a class of the compiled library."""
        if caller is not None and CdFunction.__bases__ != (caller,):
            CdFunction.__bases__ = (caller,)

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        _ = self.definition  # the signature is that of now
        if not kwargs and self._names is not None and len(args) == len(self._names):
            return self._adopted(dict(zip(self._names, args, strict=True)))
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as problem:
            message = f"`{self.__name__}` is called with the wrong arguments: {problem}"
            label = Label(self.surface.span, f"it takes {self.__signature__}")
            shown = ", ".join(f"{param.name}" for param in self.surface.params)
            helps = (f"call it as its `def` line says: `{self.__name__}({shown})`",)
            raise CdTypeError(Diagnostic("CD0436", message, (label,), (), helps)) from None
        bound.apply_defaults()
        return self._adopted(dict(bound.arguments))


def _restored(module: str, qualname: str, digest: str) -> CdFunction[..., Any]:
    """Return the function that has this name and text here, else one that its state is to fill."""
    found = pickling.named(module, qualname)
    if isinstance(found, CdFunction) and pickling.digest(found) == digest:
        return found
    return CdFunction.__new__(CdFunction)


class BoundFunction(_Part[P, T]):
    """A `@cd` function taken from an object: the object is its first argument."""

    @property
    def __self__(self) -> object:
        return self.args[0]

    @property
    def __func__(self) -> Any:
        return self.func

    def explain(self, *args: P.args, **kwargs: P.kwargs) -> explain.Explanation:
        """Return what a call becomes; see `CdFunction.explain`."""
        made: explain.Explanation = self.__func__.explain(*self.args, *args, **kwargs)
        return made

    def procedure(self, *args: Any, **kwargs: Any) -> Procedure:
        """Return the assignments that a call means; see `CdFunction.procedure`."""
        made: Procedure = self.__func__.procedure(*self.args, *args, **kwargs)
        return made

    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        """Return the function compiled for tensors; see `CdFunction.compile`."""
        made: Compiled = self.__func__.compile(*self.args, *args, **kwargs)
        return made

    def matched(self, *args: Any, **kwargs: Any) -> tuple[Match, dict[str, Any]]:
        """Return the form for arguments; see `CdFunction.matched`."""
        made: tuple[Match, dict[str, Any]] = self.__func__.matched(*self.args, *args, **kwargs)
        return made

    def on(self, backend: str) -> BoundFunction[P, T]:
        """Return the same on another backend."""
        return BoundFunction(self.__func__.on(backend), *self.args)


class _Decorator(Protocol):
    """What `cd(backend=...)` is: it compiles the function that it stands above."""

    def __call__(self, function: Callable[P, T], /) -> CdFunction[P, T]: ...


@overload
def cd(function: Callable[P, T], *, backend: str | None = None) -> CdFunction[P, T]: ...
@overload
def cd(function: None = None, *, backend: str | None = None) -> _Decorator: ...
def cd(function: Any = None, *, backend: str | None = None) -> Any:
    """Return the function compiled: called like before, run as C (or on another backend).

    Use it as `@cd` or `@cd(backend="numpy")`. Raises CdSyntaxError where the source cannot be read
    or holds what the language does not admit, all such problems at once; CdBackendError CD0801
    where there is no such backend.
    """
    if function is None:
        if backend is not None:
            RUNTIME.require(backend)
        return functools.partial(cd, backend=backend)
    if isinstance(function, staticmethod | classmethod):  # as if it stood below
        return type(function)(cd(function.__func__, backend=backend))
    if isinstance(function, MethodType):
        return BoundFunction(cd(function.__func__, backend=backend), function.__self__)
    return _defined(function, backend)


@_told
def _defined(function: Callable[P, T], backend: str | None) -> CdFunction[P, T]:
    definition = Definition(function_source.scope_of(function), function)
    _tell_reloader()
    if not persistent_cache.is_known(definition):
        _ = definition.surface  # what it does not admit is told now
    is_plain = isinstance(function, FunctionType)
    signature = inspect.signature(function, follow_wrapped=not is_plain)
    return CdFunction(definition, signature, backend)


def _tell_reloader() -> None:
    """Have `%autoreload` of IPython renew functions that others have imported, as Python's are."""
    rules = getattr(sys.modules.get("IPython.extensions.autoreload"), "UPDATE_RULES", None)
    if isinstance(rules, list) and not any(rule == _RENEWED for rule in rules):
        rules.append(_RENEWED)


def _are_functions(old: object, new: object) -> bool:
    return isinstance(old, CdFunction) and isinstance(new, CdFunction)


_RENEWED = (_are_functions, lambda old, new: old.become(new))
"""How autoreload knows what it may renew, and what is to be done then."""


@_told
def cd_from_source(
    text: str,
    globals: Mapping[str, object] | None = None,
    name: str = "<text>",
    backend: str | None = None,
) -> CdFunction[..., Any]:
    """Return the function that a text defines, compiled, for where no source can be read.

    `globals` are the names around it (none unless given; Python's builtins always), `name` is
    what errors call the text. Raises as `cd` does.
    """
    read = function_source.source_from_text(text, name)
    around = {} if globals is None else globals  # kept: what it holds may change
    definition = Definition(function_source.scope_of_namespace(around))
    definition.text = read
    _ = definition.surface
    _require_python(read)
    return CdFunction(definition, _signature(around, definition.surface), backend)


def _are_plain(params: Iterable[inspect.Parameter]) -> bool:
    return all(param.kind in _POSITIONAL for param in params)


def _require_python(read: function_source.FunctionSource) -> None:
    """Refuse (CD0100) a text that parses and yet is no Python: a `break` outside a loop."""
    tree = read.tree
    whole = ast.Expression(tree) if isinstance(tree, ast.Lambda) else ast.Module([tree], [])
    try:
        compile(whole, read.source.name, "eval" if isinstance(tree, ast.Lambda) else "exec")
    except (SyntaxError, ValueError, RecursionError) as problem:
        text = getattr(problem, "msg", None) or str(problem)
        line, column = getattr(problem, "lineno", 1) or 1, (getattr(problem, "offset", 1) or 1) - 1
        end = getattr(problem, "end_offset", None) or column + 2
        span = Span(read.source, line, column, line, max(end - 1, column + 1))
        message = f"Python cannot read this: {text}"
        helps = ("correct the text: it has to be a function that Python itself would accept",)
        raise CdSyntaxError(Diagnostic("CD0100", message, (Label(span),), (), helps)) from None


def _signature(namespace: Mapping[str, object], surface: s.Function) -> inspect.Signature:
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
            default = eval(param.default.span.text, dict(namespace))  # the user's own text
        found.append(inspect.Parameter(param.name, kinds[param.kind], default=default))
    return inspect.Signature(found)


@functools.cache
def _logger() -> Recorder:
    """Return what writes the logs of runs."""
    return log.Logger()


RUNTIME.logger = _logger
