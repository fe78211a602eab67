"""Errors without a place in a function: settings, backends, tensors of the host, lost sources."""

from __future__ import annotations

import types
from collections.abc import Callable

import numpy as np

import plusequals as pe
from plusequals.lowering import settings

SOURCE = "def f(y, x):\n    y[i] = y[i] // x[i]\n"


def no_text() -> object:
    """Decorate a function that was made from a string."""
    names: dict[str, object] = {}
    exec("def f(x):\n    return x + 1\n", names)
    return pe.cd(names["f"])


def not_a_function() -> object:
    """Decorate what was not written with `def`."""
    return pe.cd(len)


def text_of_two() -> object:
    """Give a text of two functions."""
    return pe.cd_from_source("def f(x):\n    pass\n\ndef g(x):\n    pass\n", name="example.py")


def unknown_backend() -> object:
    """Ask for a backend that does not exist."""
    return pe.cd_from_source(SOURCE, backend="ccc")(np.ones(3, int), np.ones(3, int))


def no_compiler() -> object:
    """Name a compiler that is not there."""
    with settings.override(compiler="/nowhere/compiler"):
        return pe.cd_from_source(SOURCE, backend="cc")(np.ones(3, int), np.ones(3, int))


def unknown_setting() -> object:
    """Change a setting that does not exist."""
    return pe.use(chekced=True)


def unknown_variable() -> object:
    """Set a variable of the environment that is no setting."""
    return settings.from_environment({"PLUSEQUALS_CHEKCED": "1"})


def unfit_setting() -> object:
    """Give a setting a value of another type."""
    return pe.use(checked="maybe")


def unfit_variable() -> object:
    """Give a variable of the environment a value that cannot be read."""
    return settings.from_environment({"PLUSEQUALS_CHECKED": "perhaps"})


def division_by_zero() -> object:
    """Divide integers by zero in checked mode."""
    with settings.override(checked=True):
        function = pe.cd_from_source(SOURCE, name="example.py", backend="numpy")
        return function(np.ones(3, int), np.zeros(3, int))


def no_memory() -> object:
    """Ask for more memory than there is."""
    text = "def f(y):\n    return np.zeros((10**8, 10**8))\n"
    return pe.cd_from_source(text, {"np": np}, "example.py", "numpy")(np.ones(3))


def tensor_without_the_field() -> object:
    """Read a field of a tensor that was not declared."""
    return pe.tensor("p", (3,)).numpy("vel")


def constant_tensor_written() -> object:
    """Write a constant tensor from the host."""
    pe.tensor("p", (3,), init=1.0, constant=True)[...] = 2
    return None


def too_deep() -> object:
    """Nest calls of more functions than are inlined."""
    names: dict[str, object] = {}
    for n in range(300):
        text = f"def g{n}(v):\n    return g{n + 1}(v)\n"
        names[f"g{n}"] = pe.cd_from_source(text, names, "helper.py")
    text = "def f(y):\n    return g0(y)\n"
    return pe.cd_from_source(text, names, "example.py", "numpy")(np.ones(3))


OUTSIDE: dict[str, Callable[[], object]] = {
    name: value
    for name, value in vars().copy().items()
    if isinstance(value, types.FunctionType) and value.__module__ == __name__
}
