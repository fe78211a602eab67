"""plusequals: write array assignments in Python, run compiled C or CUDA, see every number.

    @cd
    def matmul(c, a, b):
        c[i, j] = sum(a[i, k] * b[k, j])

Write a function of array assignments, put `@cd` above it, call it; `explain` shows what it became.
"""

from . import idx
from .dsl import (
    Batch,
    CdFunction,
    Comparison,
    Compiled,
    Context,
    DataParallel,
    Device,
    Field,
    Routine,
    Stream,
    Tensor,
    Timeline,
    Trace,
    backends,
    bisect,
    cd,
    cd_from_source,
    checked,
    clamp,
    comment,
    compare,
    device,
    load,
    memory,
    pad,
    profile,
    save,
    tensor,
    trace,
    wrap,
)
from .dsl.words import TYPES
from .lowering import settings
from .lowering.diagnostic import CdError
from .lowering.settings import override, use

globals().update(TYPES)

__version__ = "0.1.0"

__all__ = [
    "Batch", "CdError", "CdFunction", "Comparison", "Compiled", "Context", "DataParallel",
    "Device", "Field", "Routine", "Stream", "Tensor", "Timeline", "Trace", "__version__",
    "backends", "bisect", "cd", "cd_from_source", "checked", "clamp", "comment", "compare",
    "device", "idx", "load", "memory", "override", "pad", "profile", "save", "settings", "tensor",
    "trace", "use", "wrap",
    *TYPES,
]  # fmt: skip
