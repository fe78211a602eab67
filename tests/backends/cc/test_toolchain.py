"""Finding a compiler, learning what it is, and running it."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from plusequals.backends.cc import probe, toolchain
from plusequals.backends.cc.backend import CompiledC
from plusequals.backends.cc.toolchain import Toolchain, find_compiler, run_command
from plusequals.base import settings
from plusequals.base.diagnostic import CdBackendError

Fake = Callable[..., str]


def test_no_compiler_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cc: CompiledC
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CdBackendError) as caught:
        find_compiler()
    text = str(caught.value)
    assert caught.value.code == "CD0811"
    for way in ("pip install 'plusequals[zig]'", "apt install", "brew install", "xcode-select",
                'backend="numpy" needs none'):  # fmt: skip
        assert way in text
    assert "no C compiler was found" in str(cc.unavailable())


def test_ziglang_is_taken_where_nothing_else_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    package = ModuleSpec("ziglang", None, is_package=True)
    package.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: package)
    assert find_compiler()[1:] == ("-m", "ziglang", "cc")
    (tmp_path / "zig").write_text("")
    (tmp_path / "zig").chmod(0o755)
    assert find_compiler() == (str(tmp_path / "zig"), "cc")
    assert toolchain.fingerprint(find_compiler())


@pytest.mark.parametrize("words", ["", " -O1"])
def test_a_compiler_of_another_language_is_refused(
    words: str, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", fake("exit 1", "g++-12") + words)
    with pytest.raises(CdBackendError, match=r"g\+\+-12.* of `CC` compiles C\+\+") as caught:
        find_compiler()
    assert caught.value.code == "CD0812"


def test_setting_comes_before_cc_before_path(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = fake("exit 1", "first cc"), fake("exit 1", "second")
    monkeypatch.setenv("CC", second + " -pipe")
    assert find_compiler() == (second, "-pipe")
    with settings.override(compiler=first):
        assert find_compiler() == (first,)


@pytest.mark.parametrize("origin", ["setting", "CC"])
def test_what_was_asked_for_is_never_replaced(
    origin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "not executable"
    plain.write_text("")
    for asked, why in ((str(plain), "is not executable"), ("no-such-cc", "was not found")):
        with settings.override(compiler=asked if origin == "setting" else ""):
            monkeypatch.setenv("CC", asked if origin == "CC" else "")
            with pytest.raises(CdBackendError, match=why) as caught:
                find_compiler()
            assert f"the C compiler `{asked}`" in str(caught.value)


def test_a_relative_command_is_of_this_folder(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fake("exit 1", "mine")
    monkeypatch.chdir(os.path.dirname(path))
    monkeypatch.setenv("CC", "./mine -pipe")
    assert find_compiler() == (path, "-pipe")
    monkeypatch.setenv("CC", "")
    monkeypatch.setenv("PATH", ".")
    os.rename("mine", "cc")
    assert find_compiler() == (os.path.join(os.path.dirname(path), "cc"),)


def test_a_quotation_without_end_names_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "gcc '-pipe")
    with pytest.raises(CdBackendError, match="the C compiler `gcc '-pipe` of `CC` was not found"):
        find_compiler()


def test_without_a_path_the_systems_own_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATH")
    monkeypatch.setattr(os, "defpath", "/no/such:/folder")
    monkeypatch.setattr(os.path, "isfile", lambda path: path == "/folder/gcc")
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    assert find_compiler() == ("/folder/gcc",)


def test_a_folder_that_is_gone_or_full_is_told(tmp_path: Path) -> None:
    with pytest.raises(CdBackendError, match="CD0814.*nothing can be compiled in .*/gone: No such"):
        run_command(("true",), str(tmp_path / "gone"))
    with pytest.raises(CdBackendError, match="CD0814.*somebody has removed it meanwhile"):
        raise toolchain.removed_error(str(tmp_path))


def test_a_compiler_that_cannot_start_is_told(tmp_path: Path, cc: CompiledC) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    with settings.override(compiler=str(broken)):
        with pytest.raises(CdBackendError, match="cannot be started") as caught:
            cc.toolchain()
    assert caught.value.code == "CD0812"


def test_environment_is_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD_NOT", "x")
    monkeypatch.setenv("CPATH", "/elsewhere")
    said = run_command(("env",), tmp_path).said
    names = {line.split("=")[0] for line in said.splitlines() if "=" in line}
    assert {"PATH", "LC_ALL", "TMPDIR"} <= names
    assert not {"LD_PRELOAD_NOT", "CPATH", "CFLAGS"} & names


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    assert run_command(("echo", "a b; echo $HOME"), tmp_path).said == "a b; echo $HOME\n"


@pytest.mark.parametrize("waiting", ["by a handle", "by looking again"])
def test_what_hangs_is_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waiting: str
) -> None:
    if waiting == "by looking again":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    script = "sleep 61 & echo $! > child; sleep 62"
    started = time.monotonic()
    with settings.override(compiler_timeout=0.3):
        with pytest.raises(CdBackendError, match="did not finish in 0.3 seconds"):
            run_command(("sh", "-c", script), tmp_path)
    assert time.monotonic() - started < 30
    child = int((tmp_path / "child").read_text())
    assert _gone(child)


def test_interrupt_ends_the_compiler_too(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_command(("sh", "-c", "echo $$ > child; exec sleep 63"), tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert _gone(int((tmp_path / "child").read_text()))


def test_input_is_closed(tmp_path: Path) -> None:
    assert run_command(("cat",), tmp_path) == toolchain.CommandResult(0, "")


def test_stamp_changes_with_the_compiler_and_is_none_for_wrappers(
    fake: Fake, tmp_path: Path
) -> None:
    path = tmp_path / "gcc"
    path.write_text("1")
    one = toolchain.fingerprint((str(path),))
    path.write_text("22")
    assert one != toolchain.fingerprint((str(path),))
    assert toolchain.fingerprint((fake("exit 1", "ccache"),)) is None
    assert toolchain.fingerprint((str(path), "-m", "ziglang")) is None


def test_what_a_compiler_is_comes_from_disk_next_time(
    cc: CompiledC, monkeypatch: pytest.MonkeyPatch, cache_dir: Path
) -> None:
    shutil.rmtree(cache_dir)
    first = cc.toolchain()

    def never(*args: object) -> Toolchain:
        raise AssertionError("inspected again")

    monkeypatch.setattr(probe, "CompilerProbe", never)
    assert CompiledC().toolchain() == first
    assert cc.toolchain() is first


def _gone(process: int) -> bool:
    for _ in range(100):
        try:
            with open(f"/proc/{process}/stat") as file:
                if file.read().split()[2] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False
