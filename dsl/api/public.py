"""All public names; the package imports this module for a name that is not in `cd`."""

from ...backends.runtime.batch import Batch
from ...backends.runtime.checkpoints import load, save
from ...backends.runtime.device import Context, Device, Stream, device
from ...backends.runtime.field import Field
from ...backends.runtime.plan.plan import Plan, Run
from ...backends.runtime.routine import Compiled, Routine
from ...backends.runtime.tensor import Tensor, tensor
from ...backends.runtime.timeline import Timeline
from ..instrument.checked import checked
from ..tracing.taking import trace
from ..tracing.trace import Trace
from .cd import CdFunction, cd, cd_from_source
from .compare import Comparison, bisect, compare
from .data_parallel import DataParallel
from .gradient_check import GradientCheck, check_gradient
from .gradients import Derivative, backward, gradient, jvp, value_and_gradient, vjp
from .plans import deferred, eval, plan, sync
from .profile import profile
from .words import TYPES, clamp, comment, memory, pad, wrap

f16, bf16, f32, f64 = (TYPES[name] for name in ("f16", "bf16", "f32", "f64"))
i8, i16, i32, i64 = (TYPES[name] for name in ("i8", "i16", "i32", "i64"))
u8, u16, u32, u64 = (TYPES[name] for name in ("u8", "u16", "u32", "u64"))
c64, c128 = TYPES["c64"], TYPES["c128"]

__all__ = [
    "Batch", "CdFunction", "Comparison", "Compiled", "Context", "DataParallel", "Derivative",
    "Device", "Field", "GradientCheck", "Plan", "Routine", "Run", "Stream", "Tensor", "Timeline",
    "Trace", "backward", "bf16", "bisect", "c128", "c64", "cd", "cd_from_source", "check_gradient",
    "checked", "clamp", "comment", "compare", "deferred", "device", "eval", "f16", "f32", "f64",
    "gradient", "i16", "i32", "i64", "i8", "jvp", "load", "memory", "pad", "plan", "profile",
    "save", "sync", "tensor", "trace", "u16", "u32", "u64", "u8", "value_and_gradient", "vjp",
    "wrap",
]  # fmt: skip
