"""CUDA backend: compiles procedures for a device, with caches in memory and on disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from ...base import settings
from ...base.dataclass import dataclass
from ...base.diagnostic import NOWHERE, CdBackendError, Diagnostic, Label
from ...base.process_state import State, register
from ...lowering.analysis.accesses import collect_accesses
from ...lowering.device_branches import select_gpu_branches
from ...lowering.ir.assignments import Procedure
from ...lowering.ir.node import Node
from ...lowering.ir.rewrite import rename
from ...lowering.ir.verify import Verifier, verify_procedure
from ...lowering.lower import lower
from ...lowering.pipeline import map_to_device, optimize
from ...lowering.target import Target
from ..cache.cache import Cache, Entry, cache_key
from ..captures import NotCapturable
from ..device_arrays.device_array import DeviceArray, PlacedArray
from ..dump import debug_print, save, stage_observer
from ..gpu.device import OpenedDevice, failure_error, forked_error, unusable_error
from ..gpu.driver_protocol import Driver, DriverError, DriverMissing, Handle, Properties
from ..gpu.residency import DeviceMemory
from ..interface import API_VERSION, Origin
from . import driver, nvrtc
from .code import CudaCode
from .conditions import ARGUMENT_COUNT, CONDITION_KERNELS, conditions_text
from .host_program import HostProgram
from .host_program import plan_host as plan
from .nvrtc import CompiledModule, CompileError, Compiler

TENSOR_CAPABILITY = 8, 0
"""The least compute capability with the instructions of `tensors.h`."""
WARPGROUP_CAPABILITY = 9, 0
"""The only compute capability with warpgroup matrix multiplication."""
register(
    lambda: State(
        name="of the backend `cuda`: the driver, opened devices with their memory, loaded modules",
        owner=__name__,
        lock="a lock for the backend, for each device and for its memory",
        in_child="given up: they are the parent's; a child opens its own if none was open",
        on_reset="kept; tests play a driver",
    )
)


@dataclass(frozen=True, slots=True)
class LoadedModule:
    """A loaded module: its kernels in order, and the compiler's output."""

    module: Handle
    """Referenced here, since its destruction unloads the kernels."""
    functions: tuple[Handle, ...]
    compiled: CompiledModule


class CompiledCuda:
    """The backend for all devices: compiles each distinct text once per device."""

    name = "cuda"
    api_version = API_VERSION

    def __init__(
        self,
        find: Callable[[], Driver] = driver.find_driver,
        compiler: Callable[[], Compiler] | None = None,
    ) -> None:
        self.cache = Cache()
        self._find_driver, self._make_compiler = find, compiler
        self._driver: Driver | None = None
        self._compiler_instance: Compiler | None = None
        self._opened: dict[int, OpenedDevice] = {}
        self._loaded: dict[tuple[int, str], LoadedModule] = {}
        self._lost = False
        self._parent_objects: list[object] = []
        """Objects of the parent kept alive in a forked child: their destructors call the driver."""
        self._lock = threading.RLock()

    def unavailable(self) -> CdBackendError | None:
        """Return the error that says why no device can be used, None where one can."""
        try:
            self.driver()
            self.compiler()
        except CdBackendError as why:
            return why
        return None

    def driver(self) -> Driver:
        """Return the driver; raises CdBackendError CD0882 where there is none."""
        with self._lock:
            if self._lost:
                raise forked_error()
            if self._driver is None:
                try:
                    self._driver = self._find_driver()
                except DriverMissing as why:
                    raise unusable_error(
                        f"no CUDA device can be used: {why}",
                        "`docs/cuda.md` says what has to be installed",
                    ) from None
            return self._driver

    def compiler(self) -> Compiler:
        """Return the compiler; raises CdBackendError CD0885 where there is no suitable one."""
        with self._lock:
            if self._compiler_instance is None:
                driver = self.driver()
                try:
                    newest, _ = driver.version()
                except DriverError as why:
                    raise unusable_error(
                        f"{driver.name} fails: {why}", "restart the process"
                    ) from None
                try:
                    self._compiler_instance = (
                        nvrtc.find_compiler(newest)
                        if self._make_compiler is None
                        else self._make_compiler()
                    )
                except CompileError as why:
                    message = f"CUDA cannot be compiled: {why}"
                    package = (
                        "nvidia-cuda-nvrtc==13.0.*" if newest > 12 else "nvidia-cuda-nvrtc-cu12"
                    )
                    helps = (f"`pip install {package}`",)
                    raise CdBackendError(Diagnostic("CD0885", message, helps=helps)) from None
            return self._compiler_instance

    def opened(self, ordinal: int = 0) -> OpenedDevice:
        """Return a device, opened on first use; raises CdBackendError CD0883 if there is none."""
        with self._lock:
            if ordinal not in self._opened:
                driver = self.driver()
                try:
                    count = driver.count()
                    if ordinal >= count:
                        message = f"there is no device `cuda:{ordinal}`; there are {count}"
                        helps = ('the first one is "cuda:0"',)
                        raise CdBackendError(Diagnostic("CD0883", message, helps=helps))
                    device_properties = driver.properties(ordinal)
                    opened = OpenedDevice(driver.open(ordinal), device_properties, ordinal)
                    opened.condition_kernels = partial(self._condition_kernels, opened)
                    self._opened[ordinal] = opened
                except DriverError as why:
                    raise failure_error("opening it", f"cuda:{ordinal}", why) from None
            return self._opened[ordinal]

    def compile(self, procedure: Procedure, ordinal: int = 0) -> CudaCode:
        """Return code for the procedure on a device; raises CdBackendError."""
        started, device = time.perf_counter(), self.opened(ordinal)
        plan = translate(procedure, device.properties)
        loaded, origin = self.load(plan, procedure.name, device)
        milliseconds = 1000 * (time.perf_counter() - started)
        debug_print(
            1, f"plusequals: {procedure.name}: {device.name}, {origin}, {milliseconds:.1f} ms"
        )
        return CudaCode(
            procedure.name, plan, loaded.functions, procedure.parameters, procedure.results,
            origin, device, loaded.compiled.figures, loaded.module,
        )  # fmt: skip

    def printing(self, code: CudaCode, run_number: int) -> CudaCode:
        """Return code that prints its log on the device, each line with that number."""
        return code.printing(run_number)

    def memory_left(self, ordinal: int = 0) -> int:
        """Return the free bytes of a device, including those in the pool."""
        device = self.opened(ordinal)
        with device.working("a look at its memory"):
            return device.context.free_memory() + device.pool.pooled_bytes

    def on(self, device: int) -> OnDevice:
        """Return the backend for a device; raises CD0883 for a wrong ordinal."""
        self.opened(device)
        return OnDevice(self, device, f"{self.name}:{device}")

    def target(self) -> Target:
        """Return the target of loops before they are mapped to the threads of a device."""
        return Target(self.name, stack_bytes=settings.current().stack_bytes)

    def device_array(self, array: PlacedArray) -> DeviceArray:
        """Return another package's array as one of ours; raises CdBackendError."""
        ordinal = array.ordinal
        if ordinal is None:
            ordinal = self.opened().context.where(array.address) if array.size else 0
        opened = self.opened(ordinal)
        return DeviceArray(
            opened, array.address, array.shape, array.dtype, opened.plain, array.holder,
            array.strides, array.writable,
        )  # fmt: skip

    def memory(self, device: int) -> DeviceMemory:
        """Return the memory of a device; raises CD0883 for a wrong ordinal."""
        return DeviceMemory(self.opened(device))

    def load(
        self, plan: HostProgram, name: str, device: OpenedDevice
    ) -> tuple[LoadedModule, Origin]:
        """Return the loaded kernels of a host program, and the origin of their code."""
        compiler = self.compiler()
        target = device.properties.target_of(plan.text.specific)
        flags = compiler.flags(target)
        text = plan.text.text
        key = cache_key(text=text, flags=flags, compiler=compiler.name)
        with self._lock:
            loaded = self._loaded.get((device.ordinal, key))
            if loaded is not None:
                return loaded, "memory"
            origin: Origin = "disk"
            code = self._from_disk(key)
            if code is None:
                code, origin = self._build(key, plan, name, target)
            try:
                module = device.context.load(code.code)
                functions = tuple(
                    device.context.function(module, kernel.name, kernel.arguments, kernel.dynamic)
                    for kernel in plan.text.kernels
                )
            except DriverError as why:
                raise device.failed(name, why, plan.program.span) from None
            loaded = self._loaded[device.ordinal, key] = LoadedModule(module, functions, code)
            return loaded, origin

    def _condition_kernels(self, opened: OpenedDevice) -> tuple[Handle, Handle]:
        """Return the kernels that set conditions of graphs on a device, compiled on first use.

        Raises CdBackendError CD0885 where there is no compiler, NotCapturable where it fails.
        """
        with self._lock:
            compiler, name = self.compiler(), "conditions of a graph"
            text, target = conditions_text(), opened.properties.target_of(False)
            key = cache_key(text=text, flags=compiler.flags(target), compiler=compiler.name)
            loaded = self._loaded.get((opened.ordinal, key))
            if loaded is None:
                code = self._from_disk(key)
                if code is None:
                    with self.cache.scratch() as folder:
                        try:
                            code = compiler.build(text, target, Path(folder))
                        except CompileError as why:
                            raise NotCapturable(
                                f"needs kernels that do not compile: {why}"
                            ) from None
                    self.cache.put(key, Entry({"name": name, "log": code.log}, text, code.code))
                context = opened.context
                module = context.load(code.code)
                functions = tuple(
                    context.function(module, each, ARGUMENT_COUNT) for each in CONDITION_KERNELS
                )
                loaded = LoadedModule(module, functions, code)
                self._loaded[opened.ordinal, key] = loaded
            go_on, choose = loaded.functions
            return go_on, choose

    def _from_disk(self, key: str) -> CompiledModule | None:
        entry = self.cache.get(key)
        return None if entry is None else CompiledModule(entry.object, str(entry.metadata["log"]))

    def _build(
        self, key: str, plan: HostProgram, name: str, target: str
    ) -> tuple[CompiledModule, Origin]:
        """Compile, unless another process does: then wait for its cache entry."""
        compiler = self.compiler()
        with self.cache.building(key), self.cache.scratch() as folder:
            code = self._from_disk(key)
            if code is not None:
                return code, "disk"
            try:
                code = compiler.build(plan.text.text, target, Path(folder))
            except CompileError as why:
                raise _rejected(plan, name, compiler.name, str(why)) from None
            self.cache.put(key, Entry({"name": name, "log": code.log}, plan.text.text, code.code))
            return code, "compiled"

    def after_fork(self) -> None:
        """Give up the devices in a forked child: they belong to the parent."""
        self._lock = threading.RLock()
        self._lost = self._lost or bool(self._opened)
        for opened in self._opened.values():
            opened.lost = True
        self._parent_objects.append((self._driver, self._opened, self._loaded))
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
        """Return the error that says why no device can be used, None where one can."""
        return self.cuda.unavailable()

    def compile(self, procedure: Procedure) -> CudaCode:
        """Return code for the procedure on the device; raises CdBackendError."""
        return self.cuda.compile(procedure, self.device)

    def target(self) -> Target:
        """Return the target of loops before they are mapped to the threads of the device."""
        return self.cuda.target()

    def printing(self, code: CudaCode, run_number: int) -> CudaCode:
        """Return code that prints its log on the device, each line with that number."""
        return code.printing(run_number)

    def memory_left(self) -> int:
        """Return the free bytes of the device."""
        return self.cuda.memory_left(self.device)

    def after_fork(self) -> None:
        """Do nothing: the backend for all devices handles it."""


def translate(procedure: Procedure, device: Properties) -> HostProgram:
    """Return the host program of a procedure for a device, with its kernels."""
    options = settings.current()
    if options.verify:
        verify_procedure(procedure)
    target = target_of(device)
    watch, verify = stage_observer(procedure.name), Verifier() if options.verify else None
    program, _ = optimize(
        lower(select_gpu_branches(with_device_layouts(procedure))),
        target,
        watch,
        verify,
        options.stop_after,
    )
    access_facts = collect_accesses(
        tuple(stmt for kernel in program.kernels for stmt in kernel.body)
    )
    nodes = (*program.locals, *program.results)
    zeroed = frozenset(
        node.id for node in nodes
        if access_facts.is_read_before_written(node)
        or (node in program.results and not access_facts.is_overwritten(node))
    )  # fmt: skip
    mapped = map_to_device(program, target, watch, verify, options.stop_after)
    host_plan = replace(
        plan(mapped.program, mapped.spaces, zeroed),
        whole=mapped.whole, computed=mapped.computed, decisions=mapped.decisions,
    )  # fmt: skip
    save(procedure.name, "source.cu", host_plan.text.text)
    return host_plan


def target_of(device: Properties) -> Target:
    """Return the target description of a device, under the current settings."""
    options = settings.current()
    tensors = (
        ("f16", "bf16", *("f32",) * options.tf32)
        if device.architecture >= TENSOR_CAPABILITY
        else ()
    )
    return Target(
        "cuda", stack_bytes=options.stack_bytes, tensors=tensors, atomics=options.atomics,
        exact=options.profile == "strict", shared_bytes=device.most_shared_bytes,
        warpgroups=device.architecture == WARPGROUP_CAPABILITY,
    )  # fmt: skip


def with_device_layouts(procedure: Procedure) -> Procedure:
    """Return the procedure with layouts on the device: arrays that are copied are in C order."""
    replacements = {
        p.node.id: replace(p.node, strides=None)
        for p in procedure.parameters if p.node.strides is not None and not p.node.placed
    }  # fmt: skip
    if not replacements:
        return procedure
    return replace(
        procedure,
        parameters=tuple(
            replace(p, node=_replace_node(p.node, replacements)) for p in procedure.parameters
        ),
        body=rename(procedure.body, {}, replacements),
    )


def _replace_node(node: Node, replacements: dict[int, Node]) -> Node:
    return replacements.get(node.id, node)


def _rejected(plan: HostProgram, name: str, compiler: str, output: str) -> CdBackendError:
    """Return the error CD0881 of a text that the compiler rejected: an internal error."""
    message = f"the CUDA made of `{name}` was refused by {compiler}"
    helps = (
        "this is a fault of plusequals, not of your function: please report it",
        'until then backend="cc" runs it',
    )
    path = save(name, "refused.cu", plan.text.text)
    notes = (
        output.splitlines()[0] if output else "",
        *((f"the text is in {path}",) if path else ()),
    )
    span = plan.program.span
    labels = () if span is NOWHERE else (Label(span),)
    return CdBackendError(Diagnostic("CD0881", message, labels, notes, helps))
