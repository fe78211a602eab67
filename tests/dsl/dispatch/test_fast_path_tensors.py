"""Calls with tensors and their fields that go the short way: they see the newest version."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

from .test_fast_path import made, repeated

pytestmark = pytest.mark.usefixtures("short_way")


def test_tensors_are_read_and_written_in_their_newest_version(long_ways: list[str]) -> None:
    t = pe.tensor("t", (4,), "float64", init=1.0)
    u = pe.tensor("u", (4,), "float64", fields=("speed",))
    given = made("def f(x, y):\n    y.speed += 2 * x\n    return y")
    captured = made("def f():\n    t[...] = t + 1\n    return np.sum(t)", t=t)
    assert all(got is u for got in repeated(long_ways, lambda: given(t, u)))
    np.testing.assert_array_equal(u.speed.numpy(), np.full(4, 16.0))
    assert repeated(long_ways, captured) == [20.0, 24.0, 28.0, 32.0, 36.0]
    np.testing.assert_array_equal(t.numpy(), np.full(4, 9.0))
    t[1] = 0.0
    assert captured() == 31.0


def test_a_routine_and_a_call_see_what_the_other_has_written_of_a_tensor(
    long_ways: list[str],
) -> None:
    t = pe.tensor("t", (3,), "float64", init=1.0)
    f = made("def f(t):\n    t[...] = 2 * t")
    routine = f.compile(t).link(pe.device("cc:1").stream().context())
    repeated(long_ways, lambda: f(t), 1)
    value = 16.0
    for _ in range(3):
        routine()
        f(t)
        value *= 4
    np.testing.assert_array_equal(t.numpy(), np.full(3, value))


def test_what_a_failed_run_has_written_of_a_tensor_is_its_newest_version(
    long_ways: list[str],
) -> None:
    t = pe.tensor("t", (3,), "float64")
    n = np.arange(3)
    f = made("def f(t, n):\n    for k in range(3):\n        t[n[k]] += 1.0")
    g = made("def g(t):\n    t[...] = t + 10")
    routine = g.compile(t).link(pe.device("cc:1").stream().context())
    routine()
    repeated(long_ways, lambda: f(t, n))
    routine()
    n[2] = 9
    with pytest.raises(pe.CdError):
        f(t, n)
    routine()
    np.testing.assert_array_equal(t.numpy(), [39.0, 39.0, 38.0])


def test_what_failed_before_is_told_to_who_needs_its_tensor(long_ways: list[str]) -> None:
    t = pe.tensor("t", (3,), "float64", init=1.0)
    n = pe.tensor("n", (3,), "int64")
    n[...] = np.arange(3)
    bad = made("def bad(t, n):\n    for k in range(3):\n        t[n[k]] += 1.0")
    routine = bad.compile(t, n).link(pe.device("cc:1").stream().context())
    for text in ("def f(t):\n    return np.sum(t)", "def f(t):\n    t[...] = t + 1"):
        f = made(text)
        repeated(long_ways, lambda f=f: f(t))
        n[2] = 9
        routine()
        with pytest.raises(pe.CdError, match="CD0601"):
            f(t)
        n[2] = 2


def test_a_field_that_is_an_argument_is_read_in_its_newest_version(long_ways: list[str]) -> None:
    t = pe.tensor("t", (3,), "float64", init=1.0)
    routine = made("def g(t):\n    t.grad[...] = t.grad + 1").compile(t)
    linked = routine.link(pe.device("cc:1").stream().context())
    f = made("def f(x, a):\n    return np.sum(x) * a")
    for n in range(4):
        repeated(long_ways, lambda: f(t.grad, 2.0))
        linked()
        assert f(t.grad, 2.0) == 6.0 * (n + 1)
        t.grad[0] = n + 1
        assert f(t.grad, 1.0) == 3.0 * (n + 1)
    assert len(f._plans) == 1 and f(t.value, 1.0) == 3.0


def test_a_field_is_a_snapshot_for_who_writes_its_tensor(long_ways: list[str]) -> None:
    t = pe.tensor("t", (4,), "float64", init=np.arange(4.0))
    f = made("def f(t, x):\n    t[...] = x[::-1]")
    repeated(long_ways, lambda: f(t, t.grad))
    t[...] = np.arange(4.0)
    f(t, t.value)
    np.testing.assert_array_equal(t.numpy(), [3.0, 2.0, 1.0, 0.0])
    for text in ("def f(x):\n    return x[1:]", "def f(x):\n    return x[1:], x, 2"):
        f = made(text)
        for _ in range(4):
            got = f(t.value)
            view = got if isinstance(got, np.ndarray) else got[0]
            assert not view.flags.writeable and not np.shares_memory(view, t.value.host.array)
    with pytest.raises(pe.CdError):
        made("def f(x):\n    x[0] = 1")(t.value)


def test_no_plans_pile_up_where_a_device_has_the_newest_version(long_ways: list[str]) -> None:
    t = pe.tensor("t", (3,), "float64", init=1.0)
    routine = made("def g(t):\n    t[...] = t + 1").compile(t)
    linked = routine.link(pe.device("cc:1").stream().context())
    f = made("def f(t):\n    return np.sum(t)")
    repeated(long_ways, lambda: f(t))
    plans = len(f._plans)
    for n in range(4):
        linked()
        assert f(t) == 3 * (n + 2)
    assert len(f._plans) == plans


def test_tensors_that_are_not_alike_go_their_own_ways(long_ways: list[str]) -> None:
    f = made("def f(t):\n    return np.sum(t)")
    t, v = pe.tensor("t", (3,), "float64", init=2.0), pe.tensor("v", (4,), init=1.0)
    whole = repeated(long_ways, lambda: (f(t), f(v)))
    assert whole[0] == (6.0, 4.0) and whole[0][1].dtype == np.float32
    assert f(np.ones(3)) == 3.0
    g = made("def g(t):\n    t[...] = 1.0")
    repeated(long_ways, lambda: g(t))
    with pytest.raises(pe.CdError, match="constant"):
        g(pe.tensor("c", (3,), "float64", init=2.0, constant=True))
