"""The front door: source to assignments, the callable, and what people read of it."""

from ..backends.registry import backends
from ..backends.runtime.batch import Batch
from ..backends.runtime.device import Context, Device, Stream, device
from ..backends.runtime.field import Field
from ..backends.runtime.routine import Compiled, Routine
from ..backends.runtime.saved import load, save
from ..backends.runtime.state import RUNTIME
from ..backends.runtime.tensor import Tensor, tensor
from ..backends.runtime.timeline import Timeline
from .cd import CdFunction, cd, cd_from_source
from .checked import checked
from .parallel import DataParallel
from .profile import profile
from .tracing.compare import Comparison, bisect, compare
from .tracing.log import Logger
from .tracing.taking import trace
from .tracing.trace import Trace
from .words import clamp, comment, memory, pad, wrap

RUNTIME.logger = Logger()

__all__ = [
    "Batch", "CdFunction", "Comparison", "Compiled", "Context", "DataParallel", "Device", "Field",
    "Routine", "Stream", "Tensor", "Timeline", "Trace", "backends", "bisect", "cd",
    "cd_from_source", "checked", "clamp", "comment", "compare", "device", "load", "memory", "pad",
    "profile", "save", "tensor", "trace", "wrap",
]  # fmt: skip
