"""The backend as a whole: what it compiles, keeps, and says where it cannot."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends import registry
from plusequals.backends.cuda.backend import (
    CompiledCuda,
    LoadedModule,
    OnDevice,
    with_device_layouts,
)
from plusequals.backends.cuda.nvrtc import CompiledModule, CompileError
from plusequals.backends.gpu.driver_protocol import DriverError
from plusequals.backends.runtime.state import RUNTIME
from plusequals.base import settings
from plusequals.base.diagnostic import CdBackendError

from ..codegen.programs import assign, at, node, over, procedure, read, symbols
from .on_cpu import CpuContext, CpuDriver, Nothing, backend, installed

TEXT = "def f(y, x):\n    y[i] = x[i] + 1\n"


class Counting(Nothing):
    built = 0

    def build(self, text: str, target: str, folder: Path) -> CompiledModule:
        Counting.built += 1
        return super().build(text, target, folder)


def test_it_is_known_and_says_why_it_cannot_run() -> None:
    state = registry.backends()["cuda"]
    assert state == "available" or state.startswith(("no CUDA device can be used", "CUDA cannot"))


def test_the_same_text_is_compiled_once(tmp_path: Path) -> None:
    procedure_ = pe.cd_from_source(TEXT).procedure(np.ones(4), np.ones(4))
    Counting.built = 0
    with settings.override(cache_dir=str(tmp_path)):
        one, other = backend(compiler=Counting), backend(compiler=Counting)
        origins = [made.compile(procedure_).origin for made in (one, one, other)]
    assert origins == ["compiled", "memory", "disk"]
    assert Counting.built == 1


def test_a_device_is_chosen_by_its_number() -> None:
    driver = CpuDriver()
    with installed(backend(driver, Nothing)) as made:
        function = pe.cd_from_source(TEXT)
        function.on("cuda:1")(np.ones(4), np.ones(4))
        assert {what[0] for what in driver.log} == {1}
        function.on("cuda")(np.ones(4), np.ones(4))
        assert {what[0] for what in driver.log} == {0, 1}
        found = RUNTIME.backend("cuda:1")
        assert isinstance(found, OnDevice)
        assert found.cuda is made
        assert found.unavailable() is None
        with settings.override(backend="cuda:1"):
            function(np.ones(4), np.ones(4))
    assert driver.log[-1][0] == 1


def test_what_the_compiler_refuses_is_our_fault(tmp_path: Path) -> None:
    class Refusing(Nothing):
        name = "refusing"

        def build(self, text: str, target: str, folder: Path) -> CompiledModule:
            raise CompileError("kernels.cu(3): error: expected a `;`\nmore")

    with installed(backend(compiler=Refusing)), settings.override(dump_dir=str(tmp_path)):
        with pytest.raises(CdBackendError) as caught:
            pe.cd_from_source(TEXT, backend="cuda")(np.ones(4), np.ones(4))
    assert caught.value.code == "CD0881"
    assert "expected a `;`" in str(caught.value)
    assert (tmp_path / "f-refused.cu").read_text().count("__global__") == 1


def test_a_forked_child_gives_devices_up() -> None:
    made = backend(compiler=Nothing)
    assert made.unavailable() is None
    made.after_fork()
    assert made.unavailable() is None, "nothing was in use: the child may begin"
    made.opened()
    made.after_fork()
    why = made.unavailable()
    assert isinstance(why, CdBackendError)
    assert "a forked process cannot use the devices of its parent" in str(why)
    made.after_fork()
    assert made.unavailable() is not None, "nor can a fork of that one"


def test_what_was_compiled_before_a_fork_says_why_it_does_not_run() -> None:
    with installed(backend(compiler=Nothing)) as made:
        function, p = pe.cd_from_source(TEXT, backend="cuda"), pe.tensor("p", (4,), "float32")
        function(np.ones(4), np.ones(4))
        stream = pe.device("cuda").stream(threaded=False)
        step = pe.cd_from_source("def g(p):\n    p[i] += 1\n").compile(p)
        routine = step.link(stream.context())
        made.after_fork()
        for call in (lambda: function(np.ones(4), np.ones(4)), routine):
            with pytest.raises(CdBackendError, match="a forked process cannot") as caught:
                call()
            assert caught.value.code == "CD0882"


def test_a_forked_child_keeps_what_the_driver_would_take_back() -> None:
    made, said = backend(compiler=Nothing), []

    class Module:
        """Goes by asking the driver, as those of packages do."""

        def __del__(self) -> None:
            said.append("unloaded")

    made._loaded[0, "key"] = LoadedModule(Module(), (), CompiledModule(b"", ""))
    made.opened()
    made.after_fork()
    gc.collect()
    assert not said and not made._loaded


@pytest.mark.parametrize("verb", ["count", "version", "properties", "open"])
def test_a_driver_that_fails_at_once_is_told(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise DriverError("the device is taken")

    monkeypatch.setattr(CpuDriver, verb, fails)
    made = backend(compiler=Nothing)
    with pytest.raises(CdBackendError, match="the device is taken") as caught:
        made.compile(pe.cd_from_source(TEXT).procedure(np.ones(4), np.ones(4)))
    assert caught.value.code == ("CD0882" if verb == "version" else "CD0884")
    assert (made.unavailable() is None) == (verb != "version")


def test_what_is_left_of_memory_is_not_known_of_a_device_that_is_lost() -> None:
    class Lost(CpuDriver):
        def open(self, device: int) -> CpuContext:
            return LostContext(self, device)

    class LostContext(CpuContext):
        def free_memory(self) -> int:
            raise DriverError("the device is lost")

    made = backend(Lost(), Nothing)
    with pytest.raises(CdBackendError, match="CD0884.*the device is lost"):
        made.memory_left()


def test_nothing_is_probed_before_it_is_asked_for() -> None:
    def find() -> CpuDriver:
        raise AssertionError("probed")

    assert CompiledCuda(find).name == "cuda"


def test_arrays_are_packed_on_a_device() -> None:
    (i,) = symbols("i")
    y, x = node(0, "y", (4,), strides=(-2,)), node(1, "x", (4,))
    body = [assign("y[i] = x[i]", y, at(i), read(x, i), over((i, 0, 4)))]
    made = with_device_layouts(procedure("f", [(y, True), (x, False)], body))
    assert [p.node.strides for p in made.parameters] == [None, None]
    plain = procedure("g", [(x, True)], [])
    assert with_device_layouts(plain) is plain


def test_memory_that_is_kept_is_left_to_whoever_asks() -> None:
    """A trace takes a part of what is left: of what earlier calls needed, too."""
    made = backend(CpuDriver(memory=1 << 20), Nothing)
    device = made.opened(0)
    held = [device.pool.take(1 << 18, "x", "f", device.plain) for _ in range(3)]
    assert made.memory_left() == 1 << 18
    device.pool.give_back(held, device.plain)
    assert device.context.free_memory() == 1 << 18
    assert made.memory_left() == 1 << 20
