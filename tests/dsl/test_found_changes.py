"""What a call on disk is found by: each thing that decides the code, changed, is a miss.

Every change is made to a module as a new process has it; its call has to do what it does where
nothing is on disk, and a call without the change has to be found again.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe

Change = Callable[[Any], object]

X = np.arange(1.0, 4.0)
HEAD = "import numpy as np\nfrom plusequals import cd\n"
TEXT = """
import math
import numpy as np
from plusequals import cd
K = 2.0
N = 3
FLAG = False
TABLE = (1.0, 2.0)
ARRAY = np.arange(3.0)
def plain(function):
    return function
def negated(function):
    return lambda v: -function(v)
def helper(v, by=3.0, *, add=1.0):
    return v * by + add
@plain
def other(v):
    return helper(v) + helper(v, by=K)
@cd
def kernel(v):
    return abs(v) * TABLE[1] + N
def made(scale):
    def inner(v):
        return v * scale
    return inner
inner = made(5.0)
def twin(v):
    return v + 1
def same(g):
    return g
one, two = twin, same(twin)
@cd
def f(x):
    r = other(x) + kernel(x) + inner(x) + ARRAY
    r = r + math.pi if FLAG else r - np.e
    r = r * 2 if one is two else r
    return np.sum(r) + two(x)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(autouse=True)
def own_cache(short_way: None, folder: Path, module: Any) -> Iterator[None]:
    """A cache with a call of `f` as it is, and nothing else."""
    now, kept = folder / "now", folder / "kept"
    with pe.override(cache_dir=str(now)):
        if not kept.exists():
            module(TEXT).f(X)
            shutil.copytree(now, kept)
        shutil.rmtree(now)
        shutil.copytree(kept, now)
        yield


def is_found(function: Any) -> bool:
    return "_forms" not in vars(function)


def python(module: Any) -> Any:
    """What the functions of a module do in Python."""
    names = {key: getattr(value, "__wrapped__", value) for key, value in vars(module).items()}
    for key, value in names.items():
        if isinstance(value, types.FunctionType) and value.__globals__ is vars(module):
            made = types.FunctionType(
                value.__code__, names, key, value.__defaults__, value.__closure__
            )
            made.__kwdefaults__ = value.__kwdefaults__
            names[key] = made
    if names["one"] is not names["two"] and module.one is module.two:
        names["two"] = names["one"]
    return names["f"](X)


def outcome(run: Callable[[], Any]) -> Any:
    """What a call returns, None where it raises."""
    try:
        return run()
    except (pe.CdError, NameError, TypeError, AttributeError):
        return None


def differs(module: Any, text: str, change: Change = id) -> None:
    """Assert that a changed module is not found, and does what Python does."""
    changed = module(text)
    change(changed)
    result, expected = outcome(lambda: changed.f(X)), outcome(lambda: python(changed))
    assert not is_found(changed.f)
    if result is not None:
        np.testing.assert_allclose(result, expected, rtol=1e-6)
    again = module(TEXT)
    np.testing.assert_allclose(again.f(X), python(again))
    assert is_found(again.f)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("v * by + add", "v * by - add"),
        ("by=3.0, *", "by=4.0, *"),
        ("add=1.0", "add=1"),
        ("K = 2.0", "K = 4.0"),
        ("N = 3", "N = 3.0"),
        ("N = 3", "N = np.int8(3)"),
        ("N = 3", "N = True"),
        ("FLAG = False", "FLAG = True"),
        ("(1.0, 2.0)", "(1.0, 3.0)"),
        ("(1.0, 2.0)", "[1.0, 2.0]"),
        ("(1.0, 2.0)", "np.array([1.0, 2.0])"),
        ("np.arange(3.0)", "np.arange(3)"),
        ("np.arange(3.0)", "np.arange(6.0)[::2]"),
        ("np.arange(3.0)", "np.arange(1.0)"),
        ("@plain", "@negated"),
        ("return function", "return lambda v: 2 * function(v)"),
        ("made(5.0)", "made(6.0)"),
        ("v * scale", "scale / v"),
        ("return g\n", "import types\n    return types.FunctionType(g.__code__, {})\n"),
        ("def plain", "def abs(v):\n    return v\ndef plain"),
        ("@cd\ndef kernel", "@plain\ndef kernel"),
    ],
)
def test_texts_that_differ(module: Any, old: str, new: str) -> None:
    assert old in TEXT
    differs(module, TEXT.replace(old, new))


def set_cell(m: Any) -> None:
    m.inner.__closure__[0].cell_contents = 7.0


def swap_code(m: Any) -> None:
    def helper(v: Any, by: Any = 1.0, *, add: Any = 1.0) -> Any:
        return v

    m.helper.__code__ = helper.__code__


CHANGES: dict[str, Change] = {
    "a default": lambda m: setattr(m.helper, "__defaults__", (9.0,)),
    "no defaults": lambda m: setattr(m.helper, "__defaults__", None),
    "a default of a name": lambda m: m.helper.__kwdefaults__.update(add=2.0),
    "a cell": set_cell,
    "code": swap_code,
    "code under `@cd`": lambda m: setattr(m.kernel, "__code__", m.twin.__code__),
    "its own code": lambda m: setattr(m.f.__wrapped__, "__code__", m.twin.__code__),
    "a number": lambda m: setattr(m, "K", 3.0),
    "its type": lambda m: setattr(m, "K", np.float32(2.0)),
    "a name of Python's": lambda m: setattr(m, "abs", np.sqrt),
    "a function": lambda m: setattr(m, "helper", lambda v, by=1.0, **_: v),
    "a function under `@cd`": lambda m: setattr(m, "kernel", m.twin),
    "a module": lambda m: setattr(m, "np", m.math),
    "the same twice": lambda m: setattr(m, "two", m.made(1.0)),
    "nothing": lambda m: delattr(m, "K"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changes_in_place(module: Any, what: str) -> None:
    differs(module, TEXT, CHANGES[what])


@pytest.mark.parametrize("what", CHANGES)
def test_changes_behind_calls_that_were_found(module: Any, what: str) -> None:
    changed = module(TEXT)
    np.testing.assert_allclose(changed.f(X), python(changed))
    assert is_found(changed.f)
    CHANGES[what](changed)
    result, expected = outcome(lambda: changed.f(X)), outcome(lambda: python(changed))
    assert not is_found(changed.f)
    if result is not None:
        np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize(("name", "value"), [("e", 3.0), ("sum", lambda v: v[0])])
def test_attributes_of_a_library_that_are_others(
    module: Any, monkeypatch: Any, name: str, value: Any
) -> None:
    def run(m: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(np, name, value)
            m.f(X)

    changed = module(TEXT)
    run(changed)
    assert not is_found(changed.f)
    differs(module, TEXT.replace("@plain", "@negated"))


def test_letters_and_types_that_are_others(module: Any) -> None:
    text = HEAD + "K = 1\n@cd\ndef f(x):\n    t: f64[3]\n"
    text += "    t[i] = exp(x[i]) / 3\n    return t\n"
    assert module(text).f(X).dtype == np.float64
    for old, new in (("f64", "f32"), ("K", "i"), ("K = 1", "f64 = np.float32"), ("K", "exp")):
        f = module(text.replace(old, new)).f
        result = outcome(lambda f=f: f(X))
        assert not is_found(f)
        assert result is None or result.dtype == np.float32
    f = module(text).f
    assert f(X).dtype == np.float64 and is_found(f)


def test_a_method_of_an_operation_that_is_replaced(module: Any) -> None:
    text = HEAD + "@cd\ndef f(x):\n    return {}(x)"
    results = []
    for _ in range(2):
        m = module(text.format("np.add.reduce"))
        results.append((m.f(X), is_found(m.f)))
    assert results == [(6.0, False), (6.0, True)]
    m = module(text.format("np.add.accumulate"))
    assert list(m.f(X)) == [1.0, 3.0, 6.0] and not is_found(m.f)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: Any) -> Iterator[Callable[[str], types.ModuleType]]:
    """A function that writes the module `of_helpers`, which can be imported, and reloads it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "of_helpers.py"

    def write(text: str) -> types.ModuleType:
        path.write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        known = sys.modules.get("of_helpers")
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
        return importlib.import_module("of_helpers") if known is None else importlib.reload(known)

    yield write
    sys.modules.pop("of_helpers", None)


def test_a_module_that_is_reloaded(module: Any, package: Any) -> None:
    text = HEAD + "import of_helpers as m\n@cd\ndef f(x):\n    return m.g(x) + m.K"
    found = []
    for number in (1.0, 1.0, 2.0, 2.0, 1.0):
        package(f"K = {number}\ndef g(x):\n    return x * {number}\n")
        f = module(text).f
        np.testing.assert_array_equal(f(X), X * number + number)
        found.append(is_found(f))
        package(f"K = {number}\ndef g(x):\n    return x - {number}\n")
        np.testing.assert_array_equal(f(X), X)
    assert found == [False, True, False, True, True]


def test_names_that_come_with_a_star(module: Any, package: Any) -> None:
    text = HEAD + "from of_helpers import *\n@cd\ndef f(x):\n    return exp(x)"
    found = []
    for more in ("", "", "def exp(x):\n    return x + 1", "exp = 3", ""):
        sys.modules.pop("of_helpers", None)
        package(f"K = 1\n{more}\n")
        f = module(text).f
        expected = X + 1 if more else np.exp(X)
        result = outcome(lambda f=f: f(X))
        assert more == "exp = 3" if result is None else np.allclose(result, expected)
        found.append(is_found(f))
    assert found == [False, True, False, False, True]


def test_attributes_of_classes_are_looked_at_again(module: Any) -> None:
    text = HEAD + "class A:\n    k = {}\n@cd\ndef f(x):\n    return x * A.k"
    for number in (2.0, 2.0, 3.0):
        f = module(text.format(number)).f
        np.testing.assert_array_equal(f(X), X * number)


def test_a_helper_under_cd_is_what_it_was_when_it_was_defined(module: Any, tmp_path: Path) -> None:
    text = (
        HEAD + "@cd\ndef g(v):\n    t: f32[3]\n    t[i] = v[i]\n    return t\n"
        "@cd\ndef f(x):\n    return g(x)\n"
    )
    f = module(text).f
    (tmp_path / "written.py").write_text(text.replace("f32", "f64"))  # the code is the same
    assert f(X).dtype == np.float32
    for kind in ("f64", "f32"):
        changed = module(text.replace("f32", kind)).f
        assert changed(X).dtype == np.dtype(kind.replace("f", "float"))
