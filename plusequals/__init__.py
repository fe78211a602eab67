"""plusequals: write array assignments in Python, run compiled C or CUDA, see every number.

    @cd
    def matmul(c, a, b):
        c[i, j] = sum(a[i, k] * b[k, j])

Write a function of array assignments, put `@cd` above it, call it; `explain` shows what it became.
"""

# ruff: noqa: F405 - type checkers read the star

from typing import TYPE_CHECKING, Any

from .backends.registry import backends as backends  # before the folder takes the name
from .base.lazy_import import load_module
from .base.process_state import reset as reset

if TYPE_CHECKING:
    from . import idx
    from .backends.runtime.backend_setting import override as override
    from .backends.runtime.backend_setting import use as use
    from .base import settings
    from .base.diagnostic import CdError as CdError
    from .dsl.api.public import *  # noqa: F403

__version__ = "0.1.0"

__all__ = [
    "Batch", "CdError", "CdFunction", "Comparison", "Compiled", "Context", "DataParallel",
    "Derivative", "Device", "Field", "GradientCheck", "Plan", "Routine", "Run", "Stream", "Tensor",
    "Timeline", "Trace", "__version__", "backends", "backward", "bf16", "bisect", "c128", "c64",
    "cd", "cd_from_source", "check_gradient", "checked", "clamp", "comment", "compare", "deferred",
    "device", "eval", "f16", "f32", "f64", "gradient", "i16", "i32", "i64", "i8", "idx", "jvp",
    "load", "memory", "override", "pad", "plan", "profile", "reset", "save", "settings", "sync",
    "tensor", "trace", "u16", "u32", "u64", "u8", "use", "value_and_gradient", "vjp", "wrap",
]  # fmt: skip

_HOMES = {
    ".idx": ("idx",),
    ".base.settings": ("settings",),
    ".backends.runtime.backend_setting": ("override", "use"),
    ".base.diagnostic": ("CdError",),
    ".dsl.api.cd": ("cd", "cd_from_source", "CdFunction"),
    ".dsl.api.public": __all__,
}
"""The home modules of public names; of two, the first."""


def __getattr__(name: str) -> Any:
    """Return a public name from its home module, imported on first access."""
    for home, names in _HOMES.items():
        if name in names:
            module = load_module(home, __name__)
            globals()[name] = value = getattr(module, name, module)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
