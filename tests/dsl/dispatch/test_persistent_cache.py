"""First calls that are found on disk: what they are found by, and what makes them new again."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.cache import cache
from plusequals.backends.cc.backend import CompiledC
from plusequals.backends.runtime.state import RUNTIME

from .found import is_found

pytestmark = pytest.mark.usefixtures("short_way", "own_cache")
Load = Callable[..., types.ModuleType]


X = np.arange(4.0)
HELPER = """
    K = 2.0
    SIZES = (2, 1)
    def scaled(x, by=K, *, shift=1.0):
        return x * by + shift

    def twice(x):
        return scaled(x) + scaled(x, by=3.0)

    @cd
    def f(x):
        return twice(x) * K + SIZES[0]
"""


# ---------------------------------------------------------------- found


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("def f(x):\n    return x + 1", (X,)),
        ("def f(y, x):\n    y[i] = exp(x[i]) + y[i]", (X.copy(), X)),
        ("def f(x, n):\n    return np.sum(x) * n", (X, 3)),
        ("def f(x, n):\n    return x.reshape(n, -1)[0] + 1", (X, 2)),
        ("def f(x, a, b):\n    return x * a if b else x", (X, np.float32(3), False)),
        ("def f(x, how):\n    return np.max(x) if how == 'max' else np.min(x)", (X, "max")),
        ("def f(x):\n    return x, None, np.argmax(x), True, (3)", (X,)),
        ("def f(x, y):\n    x[:] = x + y", (X, X)),
        ("def f(x):\n    return np.median(x) + np.cumsum(x)[1]", (X[::2],)),
        ("def f(a, b):\n    return a @ b", (np.ones((3, 4)), np.ones((4, 2), np.float32))),
    ],
)
def test_a_call_is_found_and_does_the_same(world: Any, text: str, args: tuple[Any, ...]) -> None:
    outcomes = []
    for _ in range(2):
        f = world(f"@cd\n{text}")
        fresh = [one.copy() if isinstance(one, np.ndarray) else one for one in args]
        if len(args) == 2 and args[0] is args[1]:
            fresh[1] = fresh[0]
        outcomes.append((f(*fresh), fresh))
        assert is_found(f) == (len(outcomes) == 2)
    assert str(outcomes[0]) == str(outcomes[1])
    assert type(outcomes[0][0]) is type(outcomes[1][0])


def test_names_are_described_through_functions_and_modules(world: Any) -> None:
    def run(text: str = HELPER, **names: object) -> tuple[bool, list[float]]:
        f = world(text, **names)
        result = f(X)
        return is_found(f), list(result)

    first = run()
    assert first == (False, [6.0, 16.0, 26.0, 36.0]) == (False, run()[1])
    assert run()[0]
    for old, new in (
        ("x * by + shift", "x * by - shift"), ("K = 2.0", "K = 4.0"), ("shift=1.0", "shift=2.0"),
        ("by=3.0", "by=5.0"), ("(2, 1)", "(3, 1)"), ("scaled(x) +", "scaled(x) -"),
        ("return scaled(x)", "assert True\n        return scaled(x)"),
    ):  # fmt: skip
        assert old in HELPER
        found, changed = run(HELPER.replace(old, new))
        assert not found, f"{old} became {new}"
        with pe.override(cache=False):
            assert run(HELPER.replace(old, new)) == (False, changed)
        assert run(HELPER.replace(old, new)) == (True, changed)
    assert run() == (True, first[1])


def test_a_function_that_moves_is_found_and_its_errors_say_where_it_is(world: Any) -> None:
    text = """
        def pick(x, n):
            return x[n[0]]

        @cd
        def f(x, n):
            return pick(x, n) + x[n[1]]
    """
    for above in range(3):
        f = world("\n" * above + textwrap.dedent(text))
        assert f(X, np.array([1, 2])) == 3.0
        assert is_found(f) == (above > 0)
        texts = []
        for function in (f, world("\n" * above + textwrap.dedent(text))):
            with pe.override(cache=function is f):
                for at in ([9, 0], [0, 9]):
                    with pytest.raises(IndexError) as caught:
                        function(X, np.array(at))
                    texts.append(str(caught.value))
        assert texts[:2] == texts[2:]
        assert f":{5 + above}:" in texts[0] and f":{9 + above}:" in texts[1]


def test_closures_and_arguments_by_name(world: Any) -> None:
    text = """
        def made(scale, table):
            @cd
            def f(x, *, a=1.0, b=2):
                return x * scale + a * table[1] + b
            return f
        f = made(SCALE, TABLE)
    """
    table = np.arange(3.0)
    for scale, expected in ((2.0, False), (2.0, True), (3.0, False), (3.0, True)):
        f = world(text, SCALE=scale, TABLE=table)
        np.testing.assert_array_equal(f(X, a=3.0), X * scale + 3.0 + 2)
        assert is_found(f) == expected
        np.testing.assert_array_equal(f(x=X), X * scale + 1.0 + 2)
        table[1] = 1.0


def test_what_is_asked_of_a_found_function_is_made_then(world: Any) -> None:
    text = "@cd\ndef f(x):\n    t = x + 1\n    return t * 2"
    world(text)(X)
    f = world(text)
    f(X)
    assert is_found(f)
    assert "t = x + 1" in str(f.explain(X)) or "t" in str(f.explain(X))
    assert f.procedure(X).name == "f" and not is_found(f)
    with pe.trace() as trace:
        f(X)
    assert "t[0]" in str(trace)
    assert f.surface.name == "f" and f.on("numpy")(X)[0] == 2.0


def test_it_counts_as_from_disk_and_other_calls_are_compiled(world: Any) -> None:
    text = "@cd\ndef f(x):\n    return x + 1"
    world(text)(X)
    before = RUNTIME.counts()
    f = world(text)
    f(X)
    after = RUNTIME.counts()
    assert after["disk"] == before.get("disk", 0) + 1
    assert after["compiled"] == before["compiled"]
    for other in (X.astype("f4"), np.ones(5), X[::2], X.reshape(2, 2), np.arange(4)):
        np.testing.assert_array_equal(f(other), other + 1)
    odd = np.zeros(33, np.uint8)[1:].view("float64")
    np.testing.assert_array_equal(f(odd), odd + 1)
    again = world(text)
    for other in (X.astype("f4"), np.ones(5), np.arange(4), X):
        np.testing.assert_array_equal(again(other), other + 1)
    assert is_found(again)


def test_overlap_is_looked_at_in_a_found_call(world: Any) -> None:
    text = "@cd\ndef f(y, x):\n    y[:] = x[::-1]"
    world(text)(X.copy(), X)
    f, whole = world(text), np.arange(6.0)
    f(whole[:4], whole[2:])
    np.testing.assert_array_equal(whole[:4], [5, 4, 3, 2])
    f, y = world(text), X.copy()
    f(y, X)
    assert is_found(f) and list(y) == [3, 2, 1, 0]


# ---------------------------------------------------------------- not found


def test_versions_settings_and_the_processor_count(world: Any, monkeypatch: Any) -> None:
    text = "@cd\ndef f(x):\n    return x + 1"

    def found() -> bool:
        f = world(text)
        f(X)
        return is_found(f)

    assert [found(), found()] == [False, True]
    with monkeypatch.context() as patch:
        patch.setattr(np, "__version__", "9.9")
        assert [found(), found()] == [False, True]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "version", "9.9")
        assert [found(), found()] == [False, True]
    with monkeypatch.context() as patch:
        patch.setattr(cache, "package_digest", lambda *_: "other")
        patch.setattr(cache, "is_unchanged", lambda: True)
        assert [found(), found()] == [False, True]
    for change in ({"checked": True}, {"optimize": 1}, {"profile": "strict"}, {"threads": 1}):
        with pe.override(**change):
            assert [found(), found()] == [False, True]
    for shown in ({"debug": 1}, {"verify": True}, {"stop_after": "lower"}, {"cache": False}):
        with pe.override(**shown):
            assert not found()
    with pe.override("numpy"):
        assert not found()
    with pe.profile():
        assert not found()
    assert found()


@pytest.mark.parametrize(
    "name", ["i", "exp", "abs", "K", "np"],
)  # fmt: skip
def test_a_name_that_comes_to_be_or_changes(world: Any, name: str) -> None:
    text = "K = 2\n@cd\ndef f(y, x):\n    y[i] = exp(x[i]) + abs(x[i]) * K + np.pi"
    y = X.copy()
    world(text)(y, X)
    assert [is_found(f) for f in [world(text)] if f(y, X) is None] == [True]
    changed = text.replace("@cd", f"{name} = 3\n@cd")
    f = world(changed)
    try:
        f(y, X)
    except pe.CdError as problem:
        assert name in str(problem)
    assert not is_found(f)


@pytest.mark.parametrize(
    "text",
    [
        "import os\n@cd\ndef f(x):\n    return x + len(os.environ['HOME'])",
        "import sys\n@cd\ndef f(x):\n    return x + len(sys.argv)",
        "d = {'k': 2.0}\n@cd\ndef f(x):\n    return x + d.get('k')",
        "get = {'k': 2.0}.get\n@cd\ndef f(x):\n    return x + get('k')",
        "import datetime\nt = datetime.timedelta(1)\n@cd\ndef f(x):\n"
        "    return x + t.total_seconds()",
        "class A:\n    k = 2.0\na = A()\n@cd\ndef f(x):\n    return x + a.k",
        "class A:\n    k = 2.0\n@cd\ndef f(x):\n    return x + A.k",
        "d = {'k': 2.0}\n@cd\ndef f(x):\n    return x + d['k']",
        "import functools\ng = functools.partial(lambda a, b: a * b, 2.0)\n"
        "@cd\ndef f(x):\n    return g(x)",
        "def g(x, d=[1]):\n    return x + d[0]\n@cd\ndef f(x):\n    return g(x)",
        "exec('def g(x): return x')\n@cd\ndef f(x):\n    return x + int(g.__code__.co_argcount)",
    ],
)
def test_what_another_process_could_answer_otherwise_is_not_kept(world: Any, text: str) -> None:
    for _ in range(2):
        f = world(text)
        assert f(X).shape == X.shape
        assert not is_found(f)


def test_arguments_that_entries_say_nothing_of(world: Any) -> None:
    text = "@cd\ndef f(x, p):\n    return x + p[0]"
    for p in ((1.0, 2), [X, X], np.ones(3).view(np.recarray), memoryview(np.ones(3))):
        for _ in range(2):
            f = world(text)
            assert f(X, p).shape == X.shape
            assert not is_found(f)


def test_what_modules_hold_is_described(world: Any, monkeypatch: Any, tmp_path: Path) -> None:
    (tmp_path / "held_by_test.py").write_text("K = 2.0\ndef g(x):\n    return x * K\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    text = "import held_by_test as m\n@cd\ndef f(x):\n    return m.g(x) + m.K"
    values = itertools.chain([2.0, 2.0, 3.0, 3.0], itertools.repeat(2.0))
    for expected in (False, True, False, True, True):
        f, value = world(text), next(values)
        sys.modules["held_by_test"].K = value  # type: ignore[attr-defined]
        np.testing.assert_array_equal(f(X), X * value + value)
        assert is_found(f) == expected
    monkeypatch.setattr("held_by_test.g", lambda x: x)
    f = world(text)
    np.testing.assert_array_equal(f(X), X + 2.0)
    assert not is_found(f)


def test_a_file_with_the_name_of_a_module_of_python_is_the_users(
    world: Any, monkeypatch: Any, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    text = "import this as m\n@cd\ndef f(x):\n    return m.g(x) + m.K"
    for number in (1.0, 2.0):
        (tmp_path / "this.py").write_text(f"K = {number}\ndef g(x):\n    return x * {number}\n")
        monkeypatch.delitem(sys.modules, "this", raising=False)
        f = world(text)
        np.testing.assert_array_equal(f(X), X * number + number)
        sys.modules["this"].K = 9.0  # type: ignore[attr-defined]
        np.testing.assert_array_equal(f(X), X * number + 9.0)
    monkeypatch.delitem(sys.modules, "this")


def test_entries_that_are_gone_or_damaged_cost_a_compilation(world: Any, own_cache: Path) -> None:
    text = "@cd\ndef f(x):\n    return x + 1"
    world(text)(X)
    for path in sorted(own_cache.glob("v*/*.entry")):
        kept = path.read_bytes()
        for data in (b"", kept[:-1], kept[:100] + b"?" + kept[101:], None):
            if data is None:
                path.unlink()
            else:
                path.write_bytes(data)
            backend = RUNTIME.backend("cc")
            assert isinstance(backend, CompiledC)
            backend._libraries.clear()
            with pytest.warns(cache.CacheWarning) if data is not None else pe.override():
                np.testing.assert_array_equal(world(text)(X), X + 1)
            pe.reset()
        path.write_bytes(kept)


def test_a_function_that_is_wrong_is_refused_each_time(world: Any) -> None:
    for _ in range(2):
        with pytest.raises(pe.CdError):
            world("@cd\ndef f(x):\n    yield x")
        f = world("@cd\ndef f(x):\n    return nothing_known + x")
        with pytest.raises(pe.CdError, match="nothing_known"):
            f(X)


def test_a_new_process_imports_little_for_a_loop_that_threads_share(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        "import sys\nimport numpy as np\nfrom plusequals import cd\n"
        "@cd\ndef f(y, x):\n    y[i] = 2 * x[i] + 1\n"
        "x = np.ones(1000)\ny = np.empty_like(x)\nf(y, x)\nassert (y == 3).all()\n"
        "wanted = ('codegen', 'passes', 'cpu', 'transform', 'elaborate')\n"
        "print(*(m for m in sys.modules if m.startswith('plusequals') and m.split('.')[2:3] and "
        "m.split('.')[2] in wanted))\n"
    )
    names = {"CACHE_DIR": str(tmp_path / "own"), "THREADS": "2", "PARALLEL_FROM": "1"}
    given = {**os.environ, **{f"PLUSEQUALS_{name}": value for name, value in names.items()}}
    first, second = (
        subprocess.run(
            [sys.executable, file], env=given, capture_output=True, text=True, check=True
        )
        for _ in range(2)
    )
    assert "plusequals.backends.codegen" in first.stdout and first.stderr == ""
    assert second.stdout == "\n" and second.stderr == ""


def test_a_first_call_imports_what_the_function_needs(tmp_path: Path) -> None:
    text = "def saxpy(a, x, y):\\n    y += a * x\\n"
    program = (
        "import sys\nimport numpy as np\nimport plusequals as pe\n"
        f'f = pe.cd_from_source("{text}")\n'
        "x, y = np.ones(1000), np.ones(1000)\nf(2.0, x, y)\nassert (y == 3).all()\n"
        "print(*(name for name in sys.modules if name.startswith('plusequals.')))\n"
    )
    names = {"CACHE_DIR": str(tmp_path), "THREADS": "1"}
    given = {**os.environ, **{f"PLUSEQUALS_{name}": value for name, value in names.items()}}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], env=given, capture_output=True, text=True, check=True
        )
        modules = [name.removeprefix("plusequals.") for name in done.stdout.split()]
        assert "lowering.pass_table" in modules
        assert len(modules) <= LEAST_MODULES, len(modules)
        assert [name for name in modules if name in UNNEEDED or name.startswith(SCHEDULES)] == []


LEAST_MODULES = 226
"""Modules of a call of one loop over elements: another one is to be imported where it is used."""
SCHEDULES = "lowering.cpu.", "lowering.gpu.", "lowering.transform."
UNNEEDED = frozenset((
    "dsl.elaborate.comprehensions", "dsl.elaborate.conditions.comparisons",
    "dsl.elaborate.control_flow", "dsl.elaborate.index.notation", "dsl.elaborate.loop_carried",
    "dsl.numpy.primitives.shaping", "dsl.numpy.registry", "lowering.analysis.accumulation",
    "lowering.analysis.contraction", "lowering.analysis.dependence", "lowering.ir.printer",
    "lowering.ir.verify", "lowering.memory_requests", "lowering.passes.contract_arrays",
    "lowering.passes.fuse", "lowering.passes.inline", "lowering.passes.reuse",
    "lowering.passes.sink",
))  # fmt: skip
"""Of these it needs none."""


def test_what_modules_of_python_hold_is_described(world: Any, monkeypatch: Any) -> None:
    text = "import string, sys\n@cd\ndef f(x):\n    return x + len(string.digits) + sys.maxsize % 7"
    for digits, expected in (("012", False), ("012", True), ("0123", False), ("0123", True)):
        monkeypatch.setattr("string.digits", digits)
        f = world(text)
        np.testing.assert_array_equal(f(X), X + len(digits) + sys.maxsize % 7)
        assert is_found(f) == expected
