"""A module that is imported when something of it is first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from plusequals.lowering.later import Later


def test_it_is_imported_when_something_of_it_is_used() -> None:
    later = Later(".cells", "plusequals.lowering.passes")
    assert repr(later) == "<.cells of plusequals.lowering.passes, later>"
    assert later.__doc__ is not None
    assert later.__name__ == "plusequals.lowering.passes.cells"
    with pytest.raises(AttributeError, match="nothing"):
        _ = later.nothing


def test_importing_the_package_imports_little() -> None:
    program = (
        "import sys, plusequals as pe\n"
        "heavy = lambda: [name for name in sys.modules if name.startswith('plusequals.dsl')]\n"
        "assert not heavy(), heavy()\n"
        "pe.cd, pe.override, pe.CdError\n"
        "assert len(heavy()) <= 5, heavy()\n"
        "assert sorted(set(pe.__all__) - set(dir(pe))) == []\n"
        "assert callable(pe.backends) and pe.backends() and callable(pe.backends)\n"
        "assert all(getattr(pe, name) is not None for name in pe.__all__)\n"
        "assert pe.f32.dtype.short == 'f32' and pe.bf16.dtype.short == 'bf16'\n"
        "from plusequals.dsl.words import TYPES\n"
        "assert all(getattr(pe, name) is TYPES[name] for name in TYPES)\n"
        "try: pe.nothing\n"
        "except AttributeError as problem: print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "module 'plusequals' has no attribute 'nothing'\n"
