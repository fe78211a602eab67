"""All state of the process is registered, shown on the page, renewed by forks, reset by `reset`."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cache import cache
from plusequals.backends.runtime.state import RUNTIME
from plusequals.base import process_state
from plusequals.base.process_state import State

from . import module_state
from .module_state import Module, modules

PAGE = module_state.ROOT / "docs" / "architecture.md"
MEMOS = {
    "backends.cache.cache": "package_digest package_stamp",
    "backends.cc.thread_pool": "library_text library_source",
    "backends.codegen.prelude": "prelude_definitions _substitution",
    "base.dataclass": "_init_code",
    "base.settings": "_type_hint",
    "dsl.numpy.primitives.ufuncs": "resolved",
    "dsl.numpy.table": "_numpy_handlers _method_handlers",
    "dsl.source.index_letters": "_parse_text",
    "dsl.values.call_site": "_signature",
    "lowering.analysis.subscripts": "_bounds_inside",
    "lowering.ir.dtypes": "promote promote_all",
    "lowering.ir.evaluate": "_compile_text",
}
"""Memos of pure functions: what they return follows from their arguments and our files."""
CONSTANTS = {
    "backends.runtime.queue.DONE": "an event that is done; such events do not change",
    "base.dataclass._FACTORY_DEFAULT": "a mark without fields",
    "dsl.elaborate.captures.pure_calls._READING": "methods of Python's classes",
    "dsl.numpy.primitives.grids.SPECIAL": "objects of NumPy, which are compared with",
    "dsl.source.function_source.MISSING": "a mark without fields",
}
"""Values that look as if they could change, and do not."""


def short(module: Module) -> str:
    """The name of a module without that of the package."""
    return module.name.removeprefix("plusequals.")


@pytest.fixture(scope="module")
def held() -> set[str]:
    """The names that hold registered state; all modules are imported."""
    _ = modules()
    return {
        f"{state.owner.removeprefix('plusequals.')}.{name}"
        for state in process_state.states()
        for name in state.holders
    }


def test_what_modules_bind_that_can_change_is_registered(held: set[str]) -> None:
    memos = {f"{module}.{name}" for module, names in MEMOS.items() for name in names.split()}
    found = {
        f"{short(module)}.{name}"
        for module in modules()
        for name, value in module_state.bindings(module)
        if not module_state.is_table(value)
    }
    assert sorted(found - held - memos - CONSTANTS.keys()) == [], "register it, see `State`"
    assert sorted((memos | CONSTANTS.keys()) - found) == [], "it is not there any more"
    assert not held & memos


def test_what_functions_change_is_registered(held: set[str]) -> None:
    unknown = [
        f"{module.name}:{line} changes {text}"
        for module in modules()
        for line, text in module_state.mutations(module)
        if not held & _spellings(module, text)
    ]
    assert unknown == []


def _spellings(module: Module, text: str) -> set[str]:
    """The dotted beginnings of what is changed, by the module that binds it."""
    parts = text.split(".")
    home = _home(module, parts[0])
    return {f"{home}.{'.'.join(parts[: n + 1])}" for n in range(len(parts))}


def _home(module: Module, name: str) -> str:
    """The module that a name is imported from, itself where it binds the name."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            value = module.namespace[name]
            owners = [one for one in modules() if one.namespace.get(name) is value]
            return next(short(one) for one in owners if name in module_state.bound(one))
    return short(module)


def test_what_holds_registered_state_is_there(held: set[str]) -> None:
    homes = {short(module): module for module in modules()}
    for dotted in held:
        home = max((name for name in homes if dotted.startswith(f"{name}.")), key=len)
        name, _, attribute = dotted.removeprefix(f"{home}.").partition(".")
        assert name in homes[home].namespace, dotted
        assert not attribute or hasattr(homes[home].namespace[name], attribute), dotted


def test_nothing_is_rebound_and_forks_have_one_handler() -> None:
    users: dict[str, set[str]] = {"global": set(), "globals": set(), "register_at_fork": set()}
    for module in modules():
        for node in ast.walk(module.tree):
            match node:
                case ast.Global():
                    users["global"].add(module.name)
                case ast.Subscript(value=ast.Call(func=ast.Name("globals")), ctx=ast.Store()):
                    users["globals"].add(module.name)
                case ast.Call(func=ast.Attribute(attr="register_at_fork")):
                    users["register_at_fork"].add(module.name)
    assert users == {
        "global": set(),
        "globals": {"plusequals"},  # its `__getattr__` keeps public names that it has imported
        "register_at_fork": {"plusequals.base.process_state"},
    }


def test_the_page_has_a_row_for_each() -> None:
    _ = modules()
    rows = Counter(_row(state) for state in process_state.states())
    section = PAGE.read_text("utf-8").partition("## State\n")[2].partition("\n## ")[0]
    shown = Counter(line for line in section.splitlines() if line.startswith("| "))
    head = "| state | owner | guarded by | in a forked child | by `pe.reset()` |"
    assert shown - rows == Counter([head, "| --- | --- | --- | --- | --- |"]), "not registered"
    assert rows - shown == Counter(), "not on the page"


def _row(state: State) -> str:
    path = state.owner.replace(".", "/") + ".py"
    folder = path if path.startswith("plusequals/base/") else path.removeprefix("plusequals/")
    owner = f"`{folder}`" if "plusequals." in state.owner else state.owner
    held = "".join(f", `{name}`" for name in state.holders)
    return f"| {state.name} | {owner}{held} | {state.lock} | {state.in_child} | {state.on_reset} |"


def test_texts_say_whether_something_is_done() -> None:
    for state in process_state.states():
        assert (state.reset is None) == state.on_reset.startswith("kept"), state.name
        assert state.after_fork is None or state.in_child != "kept", state.name


def test_a_reset_forgets_what_was_used_told_counted_and_recorded(
    as_new: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUSEQUALS_DEBUG", "2")
    watching, told = RUNTIME.watching, cache._warned
    before = pe.settings.current().backend
    pe.use("numpy")
    told.add(("folder", "text"))
    f = pe.cd_from_source("def f(x):\n    return x + 1.0")
    with pe.trace() as trace, pe.override(threads=1):
        f(np.zeros(2))
        assert watching
        pe.reset()
        assert not watching and not told and not RUNTIME.counts()
        assert (pe.settings.current().debug, pe.settings.current().threads) == (2, 1)
        np.testing.assert_array_equal(f(np.zeros(2)), [1.0, 1.0])
    assert trace is not None and pe.settings.current().backend == before
    assert RUNTIME.watching is watching and cache._warned is told


def test_a_reset_waits_for_work_and_keeps_devices_and_functions() -> None:
    device, f = pe.device("numpy"), pe.cd_from_source("def f(x):\n    return x + 1.0")
    f(np.zeros(2))
    stream, done = device.stream(), []
    stream.submit(lambda: done.append(1))
    counted = sum(RUNTIME.counts().values())
    pe.reset()
    assert done == [1] and counted
    assert pe.device("numpy") is device
    f(np.zeros(2))
    assert RUNTIME.counts() == {}, "nothing is compiled again"


def test_each_is_done_although_one_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def fail() -> None:
        done.append("fails")
        raise ValueError("here")

    made = [
        State(name="above", owner="elsewhere", lock="", reset=lambda: done.append("above")),
        State(name="fails", owner="elsewhere", lock="", reset=fail),
        State(name="below", owner="plusequals.base.x", lock="", reset=lambda: done.append("below")),
    ]
    monkeypatch.setattr(process_state, "_states", [lambda one=one: one for one in made])
    with pytest.raises(ValueError, match="here"):
        process_state.reset()
    assert done == ["fails", "above", "below"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forks_are_prepared_from_above_and_children_renewed_from_below(tmp_path: Path) -> None:
    path = tmp_path / "forks.py"
    path.write_text(
        "import os, sys\n"
        "from plusequals.base.process_state import State, register\n"
        "def made(name, owner):\n"
        "    say = lambda when: lambda: os.write(1, f'{when} {name};'.encode())\n"
        "    register(lambda: State(name=name, owner=owner, lock='', before_fork=say('before'),\n"
        "                   after_fork_in_parent=say('parent'), after_fork=say('child')))\n"
        "made('above', 'plusequals.backends.x')\n"
        "made('below', 'plusequals.base.x')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    lines = done.stdout.split(";")
    assert [x for x in lines if x[:1] == "b"] == ["before above", "before below"]
    assert [x for x in lines if x[:1] == "p"] == ["parent below", "parent above"]
    assert [x for x in lines if x[:1] == "c"] == ["child below", "child above"]


def test_a_fork_leaves_threads_of_python_whole() -> None:
    text = (
        "import plusequals.base.process_state, os, threading\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(len(threading.enumerate()))\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.stdout == "1\n"
