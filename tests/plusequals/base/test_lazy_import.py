"""A module that is imported when something of it is first used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plusequals.base.lazy_import import LazyModule, lazy_functions


def test_it_is_imported_when_something_of_it_is_used() -> None:
    later = LazyModule(".subscripts", "plusequals.lowering.analysis")
    assert repr(later) == "<.subscripts of plusequals.lowering.analysis, later>"
    assert later.__doc__ is not None
    assert later.__name__ == "plusequals.lowering.analysis.subscripts"
    with pytest.raises(AttributeError, match="nothing"):
        _ = later.nothing


def test_a_function_is_imported_when_it_is_called() -> None:
    half, missing = lazy_functions("os", ".path:basename", ".path:nothing")
    assert repr(half) == "<basename of <.path of os, later>>"
    assert half("folder/file") == "file" and half(p="a/b") == "b"
    with pytest.raises(AttributeError, match="nothing"):
        missing()


def test_importing_the_package_imports_little() -> None:
    program = (
        "import sys, plusequals as pe\n"
        "assert not {'dataclasses', 'inspect', 'plusequals.base.diagnostic'} & set(sys.modules)\n"
        "heavy = lambda: [name for name in sys.modules if name.startswith('plusequals.dsl')]\n"
        "assert not heavy(), heavy()\n"
        "pe.cd, pe.override, pe.CdError\n"
        "assert len(heavy()) <= 10, heavy()\n"
        "assert sorted(set(pe.__all__) - set(dir(pe))) == []\n"
        "assert callable(pe.backends) and pe.backends() and callable(pe.backends)\n"
        "assert all(getattr(pe, name) is not None for name in pe.__all__)\n"
        "assert pe.f32.dtype.short == 'f32' and pe.bf16.dtype.short == 'bf16'\n"
        "from plusequals.dsl.api.words import TYPES\n"
        "assert all(getattr(pe, name) is TYPES[name] for name in TYPES)\n"
        "try: pe.nothing\n"
        "except AttributeError as problem: print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "module 'plusequals' has no attribute 'nothing'\n"


@pytest.mark.parametrize("use", ["slow.value", "registry.get('slow')", "pe.__getattr__('value')"])
def test_a_fork_waits_for_the_imports_of_other_threads(tmp_path: Path, use: str) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.3)\nvalue, made = 3, object\n")
    program = (
        "import os, signal, sys, threading, time\n"
        "from plusequals.base.lazy_import import LazyModule\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "slow = LazyModule('slow', None)\n"
        "import plusequals as pe\n"
        "from plusequals.backends import registry\n"
        "registry.BUILT_IN['slow'] = 'slow:made'\n"
        "pe._HOMES = {'slow': ('value',)}\n"
        f"thread = threading.Thread(target=lambda: {use})\n"
        "thread.start()\n"
        "while 'slow' not in sys.modules: time.sleep(0.01)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(20)\n"
        "    os._exit(slow.value)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "thread.join()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "3\n"
