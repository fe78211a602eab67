"""Functions under `@cd` in JAX and PyTorch, with their derivatives.

    g = f.jax()         called with `jax.Array`s, under `jit`, `grad` and `vmap`
    h = f.torch()       called with tensors, with `backward` and under `torch.compile`

The frameworks call the compiled function on the processor; arrays are shared without copies where
they allow it. The derivative is that of `pe.vjp`, made when it is first needed. A function is known
to a framework by kind: the shapes and types of its arrays, and all other arguments as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, cast
from uuid import uuid4

import numpy as np

from ...base.cached_property import cached_property
from ...base.dataclass import dataclass
from ...base.diagnostic import CdTypeError, Diagnostic, Label
from ..elaborate.typed import Many, New, Return
from ..gradient.requests import outputs_in_source
from .cd import CdFunction
from .gradients import Derivative, vjp

Function = CdFunction[..., Any]


class _Kind:
    """A function for one kind of arguments, as frameworks see it: of arrays, to arrays."""

    def __init__(self, function: Function, values: Sequence[Any], at: Sequence[int]) -> None:
        """Store how it is called: with `values` of which those `at` positions are arrays.

        Raises CdTypeError CD0486 where it writes arguments, or returns something else than new
        arrays and numbers of static sizes.
        """
        self.function, self.values, self.at = function, list(values), tuple(at)
        match, _ = function.on("numpy").matched(*values)
        typed = match.specialization.typed
        parameters = typed.procedure.parameters
        if any(parameter.written for parameter in parameters):
            raise _refused(function, "it writes its arguments")
        self.single = not isinstance(typed.returns, Many)
        nodes = [typed.procedure.results[one.number] for one in _flat(typed.returns, function)]
        if any(node.static_shape is None for node in nodes):
            raise _refused(function, "the sizes of its results are known when it runs")
        self.results = [(node.static_shape, node.dtype.numpy) for node in nodes]
        names = list(function.__signature__.parameters)
        self.wrt = [n for n, place in enumerate(at) if values[place].dtype.kind in "fc"]
        self.names = [names[at[n]] for n in self.wrt]
        self.smooth = [
            n for n, (_, dtype) in enumerate(self.results) if np.dtype(dtype).kind in "fc"
        ]

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the results for arrays, as arrays."""
        found = self.function(*self._filled(arrays))
        parts = [found] if self.single else _leaves(found)
        return [np.asarray(v, d) for v, (_, d) in zip(parts, self.results, strict=True)]

    def cotangents(self, arrays: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        """Return the cotangents of the arrays of floats, from those of the results of floats."""
        values = [np.asarray(one)[()] if np.ndim(one) == 0 else np.asarray(one) for one in given]
        found = self._derivative(*self._filled(arrays), *values)
        types = [self.values[self.at[n]].dtype for n in self.wrt]
        return [np.asarray(one, dtype) for one, dtype in zip(found, types, strict=True)]

    @cached_property
    def _derivative(self) -> Derivative:
        outputs = outputs_in_source(self.function.surface)
        if len(outputs) != len(self.results):
            raise _refused(self.function, "its results have no names of their own")
        return vjp(self.function, self.names, [outputs[n] for n in self.smooth])

    def _filled(self, arrays: Sequence[Any]) -> list[Any]:
        values = list(self.values)
        for place, array in zip(self.at, arrays, strict=True):
            values[place] = np.asarray(array)
        return values


def _flat(returns: Return, function: Function) -> list[New]:
    match returns:
        case New(_, None):
            return [returns]
        case Many(items):
            return [one for item in items for one in _flat(item, function)]
        case _:
            raise _refused(function, "it returns something else than new arrays and numbers")


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def _refused(
    function: Function,
    reason: str,
    way_out: str = "let it return new arrays, for example a copy of what it writes",
) -> CdTypeError:
    message = f"`{function.__name__}` cannot be called by another framework: {reason}"
    label = Label(function.surface.span)
    return CdTypeError(Diagnostic("CD0486", message, (label,), helps=(way_out,)))


def _framework(name: str) -> Any:
    """Return the module of a framework. Raises CdTypeError CD0486 where it is not installed."""
    try:
        return import_module(name)
    except ImportError as why:
        helps = (f"install it: `pip install {name}`",)
        is_missing = isinstance(why, ModuleNotFoundError)
        message = f"`{name}` is not installed" if is_missing else f"`{name}` fails: {why}"
        raise CdTypeError(Diagnostic("CD0486", message, helps=helps)) from None


def _zeros(array: Any, function: Function) -> Any:
    """Return an array of NumPy of the shape and type of one of a framework."""
    try:
        dtype = np.dtype(str(array.dtype).removeprefix("torch."))
    except TypeError:
        reason, way_out = f"NumPy has no type {array.dtype}", "convert the array before the call"
        raise _refused(function, reason, way_out) from None
    return np.zeros(tuple(array.shape), dtype)


@dataclass(eq=False, repr=False)
class _Kinds:
    """The kinds of a function that a framework has called, each with what it calls then."""

    function: Function
    is_array: Callable[[Any], bool]
    made: Callable[[_Kind], Callable[..., Any]]
    known: dict[object, Callable[..., Any]]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns, as arrays of the framework."""
        bound = self.function.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        values = list(bound.arguments.values())
        at = [n for n, one in enumerate(values) if self.is_array(one)]
        others = tuple(
            (type(one), repr(one) if isinstance(one, int | float | complex | str) else id(one))
            for n, one in enumerate(values) if n not in at
        )  # fmt: skip
        key = tuple((n, tuple(values[n].shape), str(values[n].dtype)) for n in at), others
        if key not in self.known:
            plain = [_zeros(one, self.function) if n in at else one for n, one in enumerate(values)]
            self.known[key] = self.made(_Kind(self.function, plain, at))
        return self.known[key](*(values[n] for n in at))


def jax_function(function: Function) -> Callable[..., Any]:
    """Return a function of JAX that calls another one: under `jit`, `vmap` and with `grad`, too.

    It has to return new arrays or numbers, of sizes that follow from those of its arguments. Raises
    CdTypeError CD0486 where JAX is not installed or, in a call, the function is none of that kind.
    """
    jax = _framework("jax")

    def is_array(value: Any) -> bool:
        return isinstance(value, jax.Array | np.ndarray)

    return _Kinds(function, is_array, lambda kind: _jax_call(jax, kind), {})


def _jax_call(jax: Any, kind: _Kind) -> Callable[..., Any]:
    """Return the call of one kind with JAX's rule for its derivative, whose complex cotangents are
    the conjugates of ours."""
    shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in kind.results]
    inputs = [kind.values[kind.at[n]] for n in kind.wrt]
    inputs = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in inputs]

    def host(*arrays: Any) -> Any:
        out = jax.pure_callback(
            lambda *given: kind(given), shapes, *arrays, vmap_method="sequential"
        )
        return out[0] if kind.single else tuple(out)

    def backward(arrays: Sequence[Any], cotangents: Any) -> tuple[Any, ...]:
        parts = [cotangents] if kind.single else list(cotangents)
        given = [jax.numpy.conj(parts[n]) for n in kind.smooth]
        size = len(arrays)
        found = jax.pure_callback(
            lambda *both: kind.cotangents(both[:size], both[size:]), inputs, *arrays, *given,
            vmap_method="sequential",
        )  # fmt: skip
        out = [np.zeros(one.shape, jax.dtypes.float0) for one in arrays]
        for n, one in zip(kind.wrt, found, strict=True):
            out[n] = jax.numpy.conj(one)
        return tuple(out)

    call = jax.custom_vjp(host)
    call.defvjp(lambda *arrays: (call(*arrays), arrays), backward)
    return cast(Callable[..., Any], call)


def torch_function(function: Function) -> Callable[..., Any]:
    """Return a function of PyTorch that calls another one: of tensors of the processor, with
    `backward` and under `torch.compile`; conditions and errors are those of `jax_function`."""
    torch = _framework("torch")

    def is_array(value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    return _Kinds(function, is_array, lambda kind: _torch_call(torch, kind), {})


def _torch_call(torch: Any, kind: _Kind) -> Callable[..., Any]:
    """Return the call of one kind as an operator of PyTorch, with shapes and a derivative."""
    size = len(kind.at)
    inputs = [kind.values[place] for place in kind.at]
    results = [(shape, np.dtype(dtype).name) for shape, dtype in kind.results]
    cotangents = [(inputs[n].shape, inputs[n].dtype.name) for n in kind.wrt]

    def operator(host: Callable[..., Any], count: int, given: Sequence[Any]) -> Any:
        """Return an operator of so many tensors, which returns arrays of given shapes and types."""
        taken = ", ".join(f"Tensor a{n}" for n in range(count))
        returned = ", ".join("Tensor" for _ in given)
        schema = f"({taken}) -> ({returned})" if len(given) > 1 else f"({taken}) -> Tensor"

        def run(*tensors: Any) -> Any:
            arrays = [one.detach().resolve_conj().cpu().numpy() for one in tensors]
            out = [torch.from_numpy(np.asarray(one, order="C")) for one in host(arrays)]
            return out[0] if len(out) == 1 else tuple(out)

        def shapes(*tensors: Any) -> Any:
            out = [torch.empty(shape, dtype=getattr(torch, name)) for shape, name in given]
            return out[0] if len(out) == 1 else tuple(out)

        name = f"plusequals::call_{uuid4().hex}"
        made = torch.library.custom_op(name, run, mutates_args=(), schema=schema)
        made.register_fake(shapes)
        return made

    forward = operator(kind, size, results)
    if not (kind.wrt and kind.smooth):
        return _called(forward, kind)
    reverse = operator(
        lambda both: kind.cotangents(both[:size], both[size:]), size + len(kind.smooth), cotangents
    )

    def backward(ctx: Any, *given: Any) -> Any:
        known = [
            torch.zeros(results[n][0], dtype=getattr(torch, results[n][1]))
            if given[n] is None else given[n]
            for n in kind.smooth
        ]  # fmt: skip
        found = reverse(*ctx.saved_tensors, *known)
        out: list[Any] = [None] * size
        for n, one in zip(kind.wrt, found if len(kind.wrt) > 1 else (found,), strict=True):
            out[n] = one
        return out[0] if size == 1 else tuple(out)

    forward.register_autograd(
        backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
    )
    return _called(forward, kind)


def _called(operator: Callable[..., Any], kind: _Kind) -> Callable[..., Any]:
    """Return what gives one tensor or a tuple, as the function does."""

    def call(*tensors: Any) -> Any:
        out = operator(*tensors)
        return out if kind.single or isinstance(out, tuple) else (out,)

    return call
