"""The backend `cuda`: kernels compiled for a device of this machine, kept in memory and on disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ...base import settings
from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, CdBackendError, Diagnostic, Label
from ...lowering.analysis.accesses import accesses
from ...lowering.device_branches import for_many
from ...lowering.ir.assignments import Procedure
from ...lowering.ir.node import Node
from ...lowering.ir.rewrite import rename
from ...lowering.ir.verify import Verifier, verify_procedure
from ...lowering.lower import lower
from ...lowering.pipeline import map_to_device, optimize
from ...lowering.target import Target
from ..cache.cache import Cache, Entry, content_key
from ..dump import observer, save, tell
from ..gpu.device import Opened, failed, forked, unusable
from ..gpu.driver_protocol import Driver, DriverError, Handle, Missing, Properties
from ..gpu.residency import Memory
from ..interface import API_VERSION, Origin
from . import driver, nvrtc
from .code import CudaCode
from .host_program import Plan, plan
from .nvrtc import Compiler, Failed, Made

TENSORS = 8, 0
"""The first devices that have the instructions of `tensors.h`."""
WARPGROUPS = 9, 0
"""The only devices on which four warps multiply together."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Code on a device: its kernels in order, and what the compiler said."""

    module: Handle
    """Kept here, since letting go of it takes the kernels away."""
    functions: tuple[Handle, ...]
    made: Made


class CompiledCuda:
    """Compiles kernels for a device, once for each different text."""

    name = "cuda"
    api_version = API_VERSION

    def __init__(
        self,
        find: Callable[[], Driver] = driver.find,
        compiler: Callable[[], Compiler] | None = None,
    ) -> None:
        self.cache = Cache()
        self._find, self._compiler = find, compiler
        self._driver: Driver | None = None
        self._made: Compiler | None = None
        self._opened: dict[int, Opened] = {}
        self._loaded: dict[tuple[int, str], Loaded] = {}
        self._lost = False
        self._parents: list[object] = []
        """What a forked child keeps: packages would have the driver take back what goes."""
        self._lock = threading.RLock()

    def unavailable(self) -> CdBackendError | None:
        """Return why nothing can run on a device here, and what to do about it."""
        try:
            self.driver()
            self.compiler()
        except CdBackendError as why:
            return why
        return None

    def driver(self) -> Driver:
        """Return the way to the devices; raises CdBackendError CD0882 where there is none."""
        with self._lock:
            if self._lost:
                raise forked()
            if self._driver is None:
                try:
                    self._driver = self._find()
                except Missing as why:
                    raise unusable(
                        f"no CUDA device can be used: {why}",
                        "`docs/cuda.md` says what has to be installed",
                    ) from None
            return self._driver

    def compiler(self) -> Compiler:
        """Return what compiles; raises CdBackendError CD0885 where there is none that fits."""
        with self._lock:
            if self._made is None:
                driver = self.driver()
                try:
                    newest, _ = driver.version()
                except DriverError as why:
                    raise unusable(f"{driver.name} fails: {why}", "restart the process") from None
                try:
                    self._made = nvrtc.find(newest) if self._compiler is None else self._compiler()
                except Failed as why:
                    message = f"CUDA cannot be compiled: {why}"
                    package = (
                        "nvidia-cuda-nvrtc==13.0.*" if newest > 12 else "nvidia-cuda-nvrtc-cu12"
                    )
                    helps = (f"`pip install {package}`",)
                    raise CdBackendError(Diagnostic("CD0885", message, helps=helps)) from None
            return self._made

    def opened(self, ordinal: int = 0) -> Opened:
        """Return a device, in use from now on; raises CdBackendError CD0883 where there is none."""
        with self._lock:
            if ordinal not in self._opened:
                found = self.driver()
                try:
                    count = found.count()
                    if ordinal >= count:
                        message = f"there is no device `cuda:{ordinal}`; there are {count}"
                        helps = ('the first one is "cuda:0"',)
                        raise CdBackendError(Diagnostic("CD0883", message, helps=helps))
                    known = found.properties(ordinal)
                    self._opened[ordinal] = Opened(found.open(ordinal), known, ordinal)
                except DriverError as why:
                    raise failed("opening it", f"cuda:{ordinal}", why) from None
            return self._opened[ordinal]

    def compile(self, procedure: Procedure, ordinal: int = 0) -> CudaCode:
        """Return code for the procedure on a device; raises CdBackendError."""
        started, device = time.perf_counter(), self.opened(ordinal)
        made = translate(procedure, device.properties)
        loaded, origin = self.load(made, procedure.name, device)
        took = 1000 * (time.perf_counter() - started)
        tell(1, f"plusequals: {procedure.name}: {device.name}, {origin}, {took:.1f} ms")
        return CudaCode(
            procedure.name, made, loaded.functions, procedure.parameters, procedure.results,
            origin, device, loaded.made.figures, loaded.module,
        )  # fmt: skip

    def printing(self, code: CudaCode, run_number: int) -> CudaCode:
        """Return code whose device prints what it logs, each line with that number."""
        return code.printing(run_number)

    def memory_left(self, ordinal: int = 0) -> int:
        """Return how many bytes of a device nobody uses; what is kept for later is among them."""
        device = self.opened(ordinal)
        with device.working("a look at its memory"):
            return device.context.free_memory() + device.pool.kept

    def on(self, device: int) -> OnDevice:
        """Return the backend for the device of a number; raises CD0883 where there is none."""
        self.opened(device)
        return OnDevice(self, device, f"{self.name}:{device}")

    def memory(self, device: int) -> Memory:
        """Return the memory of a device, where arrays stay; raises CD0883 where there is none."""
        return Memory(self.opened(device))

    def load(self, made: Plan, name: str, device: Opened) -> tuple[Loaded, Origin]:
        """Return the kernels of a plan on a device, and where they came from."""
        compiler = self.compiler()
        target = device.properties.target_of(made.text.specific)
        flags = compiler.flags(target)
        text = made.text.text
        key = content_key(text=text, flags=flags, compiler=compiler.name)
        with self._lock:
            found = self._loaded.get((device.ordinal, key))
            if found is not None:
                return found, "memory"
            origin: Origin = "disk"
            code = self._from_disk(key)
            if code is None:
                code, origin = self._built(key, made, name, target)
            try:
                module = device.context.load(code.code)
                functions = tuple(
                    device.context.function(module, one.name, one.arguments, one.dynamic)
                    for one in made.text.kernels
                )
            except DriverError as why:
                raise device.failed(name, why, made.program.span) from None
            found = self._loaded[device.ordinal, key] = Loaded(module, functions, code)
            return found, origin

    def _from_disk(self, key: str) -> Made | None:
        entry = self.cache.get(key)
        return None if entry is None else Made(entry.object, str(entry.metadata["log"]))

    def _built(self, key: str, made: Plan, name: str, target: str) -> tuple[Made, Origin]:
        """Compile, unless another process does: then wait for what it puts on disk."""
        compiler = self.compiler()
        with self.cache.building(key), self.cache.scratch() as folder:
            code = self._from_disk(key)
            if code is not None:
                return code, "disk"
            try:
                code = compiler.build(made.text.text, target, Path(folder))
            except Failed as why:
                raise _refused(made, name, compiler.name, str(why)) from None
            self.cache.put(key, Entry({"name": name, "log": code.log}, made.text.text, code.code))
            return code, "compiled"

    def after_fork(self) -> None:
        """Give the devices up in a forked child: they are its parent's."""
        self._lock = threading.RLock()
        self._lost = self._lost or bool(self._opened)
        for one in self._opened.values():
            one.lost = True
        self._parents.append((self._driver, self._opened, self._loaded))
        self._driver = None
        self._opened, self._loaded = {}, {}


@dataclass(frozen=True, slots=True)
class OnDevice:
    """The backend for one device."""

    cuda: CompiledCuda
    device: int
    name: str
    api_version: int = API_VERSION

    def unavailable(self) -> CdBackendError | None:
        """Return why nothing can run on a device here."""
        return self.cuda.unavailable()

    def compile(self, procedure: Procedure) -> CudaCode:
        """Return code for the procedure on the device; raises CdBackendError."""
        return self.cuda.compile(procedure, self.device)

    def printing(self, code: CudaCode, run_number: int) -> CudaCode:
        """Return code whose device prints what it logs, each line with that number."""
        return code.printing(run_number)

    def memory_left(self) -> int:
        """Return how many bytes of the device nobody uses."""
        return self.cuda.memory_left(self.device)

    def after_fork(self) -> None:
        """Do nothing: the backend for all devices is told."""


def translate(procedure: Procedure, device: Properties) -> Plan:
    """Return the kernels of a procedure for a device, and what the host does around them."""
    chosen = settings.current()
    if chosen.verify:
        verify_procedure(procedure)
    target = target_of(device)
    watch, verify = observer(procedure.name), Verifier() if chosen.verify else None
    program, _ = optimize(
        lower(for_many(packed(procedure))), target, watch, verify, chosen.stop_after
    )
    found = accesses(tuple(stmt for kernel in program.kernels for stmt in kernel.body))
    nodes = (*program.locals, *program.results)
    zeroed = frozenset(
        node.id for node in nodes
        if found.read_before_written(node)
        or (node in program.results and not found.is_overwritten(node))
    )  # fmt: skip
    mapped = map_to_device(program, target, watch, verify, chosen.stop_after)
    made = replace(
        plan(mapped.program, mapped.spaces, zeroed),
        whole=mapped.whole, computed=mapped.computed, decisions=mapped.decisions,
    )  # fmt: skip
    save(procedure.name, "source.cu", made.text.text)
    return made


def target_of(device: Properties) -> Target:
    """Return what a schedule may know of a device, under the current settings."""
    chosen = settings.current()
    tensors = ("f16", "bf16", *("f32",) * chosen.tf32) if device.architecture >= TENSORS else ()
    return Target(
        "cuda", stack_bytes=chosen.stack_bytes, tensors=tensors, atomics=chosen.atomics,
        exact=chosen.profile == "strict", shared_bytes=device.most_shared_bytes,
        warpgroups=device.architecture == WARPGROUPS,
    )  # fmt: skip


def packed(procedure: Procedure) -> Procedure:
    """Return the procedure with every array as it is on a device: in C order what is copied."""
    moved = {
        p.node.id: replace(p.node, strides=None)
        for p in procedure.parameters if p.node.strides is not None and not p.node.placed
    }  # fmt: skip
    if not moved:
        return procedure
    return replace(
        procedure,
        parameters=tuple(replace(p, node=_moved(p.node, moved)) for p in procedure.parameters),
        body=rename(procedure.body, {}, moved),
    )


def _moved(node: Node, moved: dict[int, Node]) -> Node:
    return moved.get(node.id, node)


def _refused(made: Plan, name: str, compiler: str, said: str) -> CdBackendError:
    """Return the error CD0881 of a text that was refused: a fault of ours."""
    message = f"the CUDA made of `{name}` was refused by {compiler}"
    helps = (
        "this is a fault of plusequals, not of your function: please report it",
        'until then backend="cc" runs it',
    )
    path = save(name, "refused.cu", made.text.text)
    notes = (said.splitlines()[0] if said else "", *((f"the text is in {path}",) if path else ()))
    span = made.program.span
    labels = () if span is NOWHERE else (Label(span),)
    return CdBackendError(Diagnostic("CD0881", message, labels, notes, helps))
