"""The whole way through a C compiler: results, faults, prints, and everything that can go wrong."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cache.cache import CacheWarning
from plusequals.backends.cc import backend as cc_backend
from plusequals.backends.cc.backend import CompiledC
from plusequals.backends.cc.fast_call import FastPath
from plusequals.base import process_state, settings
from plusequals.base.diagnostic import CdBackendError
from plusequals.lowering.ir.assignments import Procedure

from .. import procedures

Fake = Callable[..., str]
ROOT = Path(__file__).parents[3]


def doubled(cc: CompiledC, procedure: Procedure | None = None) -> tuple[str, list[float]]:
    """Where the code of `scale` came from, and what it computes."""
    code = cc.compile(procedure or procedures.scale())
    y = np.zeros(4)
    assert code.run((y, np.arange(4.0))) == ()
    return code.origin, y.tolist()


RIGHT = [0.0, 2.0, 4.0, 6.0]


def entries(cache_dir: Path, source: str = "scale") -> list[Path]:
    return [p for p in cache_dir.glob("v*/*.entry") if b"pe_" + source.encode() in p.read_bytes()]


def test_compiled_then_memory_then_disk(cc: CompiledC) -> None:
    kept = cc.compile(procedures.scale())
    assert kept.origin == "compiled"
    assert "* 2.0" in kept.text
    assert doubled(cc) == ("memory", RIGHT)
    assert doubled(CompiledC()) == ("disk", RIGHT)
    del kept
    assert doubled(cc) == ("disk", RIGHT)
    with settings.override(cache=False):
        assert doubled(CompiledC()) == ("compiled", RIGHT)


@pytest.fixture
def nothing_known(tmp_path: Path) -> Iterator[None]:
    """Nothing is on disk, nor what other tests have compiled."""
    with settings.override(cache_dir=str(tmp_path / "nothing")):
        yield


@pytest.fixture
def two_processors(monkeypatch: pytest.MonkeyPatch, nothing_known: None) -> None:
    """The machine has two, whatever it has."""
    monkeypatch.setattr(cc_backend, "processors", lambda: 2)
    monkeypatch.setattr(CompiledC, "parallel_limits", lambda self: (2, 0))


@pytest.mark.usefixtures("two_processors")
def test_the_run_time_library_is_compiled_beside_other_things(
    cc: CompiledC, monkeypatch: pytest.MonkeyPatch
) -> None:
    with settings.override(cache=False):
        cc.prepare()
        assert not cc._advance
    cc.prepare()
    cc.prepare()
    assert len(cc._advance) == 1
    with monkeypatch.context() as patch:
        patch.setattr(cc_backend, "Trial", None)  # nothing else is begun
        library = cc.threads()
    assert not cc._advance
    assert cc.threads() is library
    other = CompiledC()
    other.prepare()
    assert not other._advance, "it is on disk"
    assert other.threads().key == library.key


@pytest.mark.usefixtures("two_processors")
def test_what_nobody_asked_for_is_kept_at_the_end_of_the_process(cc: CompiledC) -> None:
    cc.prepare()
    ((key, begun),) = cc._advance.items()
    begun._process = -1  # it is a parent's
    begun._at_exit()
    assert cc.cache.get(key) is None
    library = cc.threads()
    assert library.key == key and cc._advance == {key: begun}
    begun._process = os.getpid()
    begun._at_exit()
    entry = cc.cache.get(key)
    assert entry is not None and entry.metadata["entry"] == "pe_threads"


@pytest.mark.usefixtures("two_processors")
def test_the_run_time_library_is_compiled_while_the_compiler_is_looked_at(cc: CompiledC) -> None:
    cc.begin()
    begun = cc._guess
    assert begun is not None and not cc._advance
    cc.prepare()
    assert cc._guess is None and list(cc._advance.values()) == [begun]
    assert cc.threads().key not in cc._advance


@pytest.mark.usefixtures("two_processors")
@pytest.mark.parametrize("flags", [(), ("-fwrapv",)])
def test_what_was_compiled_by_a_wrong_guess_is_dropped(
    cc: CompiledC, flags: tuple[str, ...]
) -> None:
    cc.begin()
    begun = cc._guess
    assert begun is not None
    if flags:
        begun.toolchain = replace(begun.toolchain, flags=flags)
        cc.prepare()
        assert cc._guess is None and begun not in cc._advance.values()
    else:
        begun._at_exit()  # nobody has asked what the compiler is
    assert not Path(begun._folder).exists()
    assert all(one.process.poll() is not None for one in begun._running)


@pytest.mark.usefixtures("nothing_known")
def test_where_there_is_one_processor_nothing_is_begun(
    cc: CompiledC, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cc_backend, "processors", lambda: 1)
    monkeypatch.setattr(CompiledC, "parallel_limits", lambda self: (2, 0))
    cc.prepare()
    assert not cc._advance and not cc.fast_path.is_compiling
    monkeypatch.setattr(cc_backend, "processors", lambda: 3)
    cc.prepare()
    assert cc._advance and cc.fast_path.is_compiling
    for begun in (*cc._advance.values(), cc.fast_path._coming):
        assert begun is not None
        begun._at_exit()
    assert all(cc.cache.get(key) is not None for key in cc._advance)
    assert FastPath(cc.cache).wanted(cc.toolchain, []) is not None


def test_what_decides_the_code_decides_the_key(cc: CompiledC) -> None:
    kept = [cc.compile(procedures.scale()), cc.compile(procedures.scale(3.0))]
    with settings.override(optimize=0):
        kept.append(cc.compile(procedures.scale()))
    assert [code.origin for code in kept] == ["compiled"] * 3


def test_a_library_without_its_function_is_told(cc: CompiledC, fake: Fake) -> None:
    script = 'echo "int other;" > kernel.c; exec "$real" "$@"'
    with settings.override(compiler=fake(script)), pytest.raises(CdBackendError) as caught:
        cc.compile(procedures.scale())
    assert caught.value.code == "CD0813"
    assert "has no function `pe_scale`" in str(caught.value)


def test_damaged_entries_are_made_again(cc: CompiledC, cache_dir: Path) -> None:
    doubled(cc)
    (entry,) = entries(cache_dir)
    whole = entry.read_bytes()
    for damaged in (whole[:100], whole[: len(whole) // 2], whole[:-1] + b"?"):
        entry.write_bytes(damaged)
        process_state.reset()  # a process is told once
        with pytest.warns(CacheWarning, match="made again") as told:
            assert doubled(CompiledC()) == ("compiled", RIGHT)
        assert len(told) == 1
        assert doubled(CompiledC()) == ("disk", RIGHT)
    assert entry.read_bytes()[:64] == whole[:64]


@pytest.mark.parametrize("obstacle", ["file", "open", "gone"])
def test_a_cache_that_cannot_be_used_harms_no_call(
    cc: CompiledC, cache_dir: Path, obstacle: str, recwarn: pytest.WarningsRecorder
) -> None:
    cc.toolchain()
    (root,) = cache_dir.iterdir()
    for path in root.iterdir():
        path.unlink()
    match obstacle:
        case "file":
            root.rmdir()
            root.write_text("")
        case "open":
            root.chmod(0o777)
        case _:
            root.rmdir()
    assert doubled(cc) == ("compiled", RIGHT)
    assert len(recwarn) == (0 if obstacle == "gone" else 1)


def test_a_full_disk_harms_no_call(cc: CompiledC, monkeypatch: pytest.MonkeyPatch) -> None:
    cc.toolchain()

    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(CacheWarning, match="No space left"):
        assert doubled(cc) == ("compiled", RIGHT)


@pytest.mark.parametrize("name", ["with space & $(id)", "größe-数-🙂", "x" * 200])
def test_any_folder_will_do(tmp_path: Path, name: str) -> None:
    with settings.override(cache_dir=str(tmp_path / name / name)):
        assert doubled(CompiledC()) == ("compiled", RIGHT)
        assert doubled(CompiledC()) == ("disk", RIGHT)


def test_threads_compile_once_and_share_the_code(cc: CompiledC) -> None:
    barrier = threading.Barrier(8)
    chosen = {"cache_dir": settings.current().cache_dir, "optimize": 1}
    kept = []

    def work(number: int) -> bool:
        with settings.override(**chosen):
            barrier.wait()
            code = cc.compile(procedures.scale(size=1000))
        kept.append(code)
        x, y = np.full(1000, float(number)), np.zeros(1000)
        for _ in range(50):
            y[...] = 0
            code.run((y, x))
            if not (y == 2 * number).all():
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert sorted(code.origin for code in kept) == ["compiled", *["memory"] * 7]


def script(cache_dir: Path, body: str, **changes: object) -> subprocess.Popen[str]:
    """A process that runs a body with a backend `cc` on the same cache."""
    head = f"""
        import numpy as np, os, sys
        from plusequals.base import settings
        from plusequals.backends.cc.backend import CompiledC
        from tests.backends import procedures
        settings.use(cache_dir={str(cache_dir)!r}, optimize=1, **{changes!r})
        cc, y, x = CompiledC(), np.zeros(4), np.arange(4.0)
    """
    text = textwrap.dedent(head) + textwrap.dedent(body)
    return subprocess.Popen(
        [sys.executable, "-c", text], cwd=ROOT, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def test_processes_on_an_empty_cache_compile_once(
    cc: CompiledC, cache_dir: Path, fake: Fake, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    compiler = fake(f'echo x >> {log}; sleep 0.5; exec "$real" "$@"')
    body = """
        code = cc.compile(procedures.scale())
        code.run((y, x))
        print(code.origin, y.tolist())
    """
    running = [script(cache_dir, body, compiler=compiler) for _ in range(2)]
    said = sorted(process.communicate(timeout=60) for process in running)
    assert said == [(f"compiled {RIGHT}\n", ""), (f"disk {RIGHT}\n", "")]
    assert log.read_text() == "x\n"
    left = [p.name for p in cache_dir.glob("v*/*") if not p.name.startswith("lock-")]
    assert all(name.endswith(".entry") for name in left)


def test_a_process_killed_while_compiling_holds_up_nobody(
    cc: CompiledC, cache_dir: Path, fake: Fake, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    compiler = fake(f'[ -e {started} ] && exec "$real" "$@"; echo $$ > {started}; exec sleep 30')
    process = script(cache_dir, "cc.compile(procedures.scale())", compiler=compiler)
    for _ in range(600):
        if started.exists() and started.read_text():
            break
        time.sleep(0.05)
    process.kill()
    process.communicate()
    with settings.override(compiler=compiler, cache_timeout=20.0):
        begun = time.monotonic()
        assert doubled(cc) == ("compiled", RIGHT)
        assert time.monotonic() - begun < 15
    os.kill(int(started.read_text()), signal.SIGKILL)


def test_a_forked_child_runs_and_compiles(cc: CompiledC, cache_dir: Path) -> None:
    body = """
        from plusequals.backends.runtime.state import Runtime
        runtime = Runtime()
        code = runtime.compile(procedures.scale(), "cc")
        code.run((y, x))
        for lock in runtime.backend("cc")._locks:
            lock._lock.acquire()
        child = os.fork()
        if child == 0:
            y[...] = 0
            code.run((y, x))
            other = runtime.compile(procedures.scale(3.0), "cc")
            z = np.zeros(4)
            other.run((z, x))
            print(y.tolist(), z.tolist(), other.origin, flush=True)
            os._exit(0)
        print(os.waitpid(child, 0)[1])
    """
    out, error = script(cache_dir, body).communicate(timeout=60)
    assert error == ""
    assert out == f"{RIGHT} [0.0, 3.0, 6.0, 9.0] compiled\n0\n"


def test_exit_while_a_thread_is_inside_is_clean(cache_dir: Path) -> None:
    body = """
        import threading
        code = cc.compile(procedures.scale(size=1 << 20))
        y, x = np.zeros(1 << 20), np.zeros(1 << 20)
        def forever():
            while True:
                code.run((y, x))
        threading.Thread(target=forever, daemon=True).start()
    """
    process = script(cache_dir, body)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0


def test_debug_tells_one_line_for_each_function(
    cc: CompiledC, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with settings.override(debug=1, dump_dir=str(tmp_path / "dump"), verify=True):
        cc.compile(procedures.scale())
    assert re.fullmatch(r"plusequals: scale: cc, compiled, [\d.]+ ms\n", capsys.readouterr().err)
    assert "pe_scale" in (tmp_path / "dump" / "scale-source.c").read_text()


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize(("wide", "narrow"), [("f8", "f4"), ("c16", "c8")])
def test_trap_a_cast_to_a_narrower_type_rounds_however_few_elements_there_are(
    wide: str, narrow: str, size: int
) -> None:
    x = np.random.default_rng(1).normal(size=size) * np.ones(size, wide)
    for value in (f"x.astype('{narrow}').astype('{wide}')", f"x + x + x.astype('{narrow}')"):
        f = pe.cd_from_source(f"def f(x):\n    return {value}\n", backend="cc")
        with settings.override(optimize=3):
            np.testing.assert_array_equal(f(x), eval(value, {"x": x}), strict=True)


@pytest.mark.parametrize("shape", [(4, 5), (100, 3), (6, 9), (5, 4, 3)])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "i8"])
def test_trap_each_element_is_chosen_by_its_own_test(dtype: str, shape: tuple[int, ...]) -> None:
    m, b, c = (np.random.default_rng(1).normal(size=(3, *shape)) * 9).astype(dtype)
    texts = "np.where(m > 0, b, c)", "np.where(m > 0, b, 0)", "np.where(m == 0, c, b).sum()"
    for text in texts:
        f = pe.cd_from_source(f"def f(m, b, c):\n    return {text}\n", {"np": np}, backend="cc")
        want = eval(text, {"np": np, "m": m, "b": b, "c": c})
        with settings.override(optimize=3):
            np.testing.assert_allclose(f(m, b, c), want, rtol=1e-5 if "sum" in text else 0)


@pytest.mark.usefixtures("two_processors")
def test_what_was_begun_and_went_wrong_is_compiled_again(cc: CompiledC) -> None:
    cc.prepare()
    ((key, begun),) = cc._advance.items()
    shutil.rmtree(begun._folder, ignore_errors=True)  # as where somebody empties the cache
    assert cc.threads().key == key
    assert not cc._advance and cc.cache.get(key) is not None
