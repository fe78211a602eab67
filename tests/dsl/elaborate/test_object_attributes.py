"""`self.t += dt`: attributes of objects that a function assigns are set after the run."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd


class State:
    kind = 1

    def __init__(self) -> None:
        self.t, self.n, self.done, self.name = 0.0, 0, False, "a"
        self.u, self.v = np.arange(4.0), np.ones(4)
        self.single = np.float32(1.5)
        self.inner = types.SimpleNamespace(t=2.0)

    def advance(self, dt: Any) -> Any:
        before = self.t
        self.t += dt
        self.n = self.n + 1
        return before

    def renew(self) -> None:
        self.u = self.u * 0.5 + self.v


@dataclass
class Record:
    t: float = 0.0
    n: int = 0


class Slotted:
    __slots__ = ("n", "t")

    def __init__(self) -> None:
        self.t, self.n = 0.25, 3


def counts(self: Any, dt: Any) -> Any:
    before = self.t
    self.t += dt
    self.n += 2
    return before, self.t, self.t + dt


def replaces(self: Any, dt: Any) -> Any:
    self.t, self.n = self.n, self.t
    self.t = self.t * 2 + 1
    self.extra = dt
    self.label = "set"
    self.nothing = None
    return self.extra


def types_change(self: Any, dt: Any) -> None:
    self.n += dt
    self.t = 3
    self.single = self.single * 2
    self.done = not self.done
    self.name += "b"


def numpy_types(self: Any, dt: Any) -> None:
    self.single += np.float32(dt)
    self.t = np.float64(dt) * self.single


def of_attributes(self: Any, dt: Any) -> None:
    other, state = self, self.inner
    state.t += dt
    self.inner.t *= 2.0
    other.t += state.t
    self.t += 1.0


def by_methods(self: Any, dt: Any) -> Any:
    total = self.t + self.advance(dt) + self.t
    self.advance(2 * dt)
    return total


def in_a_loop(self: Any, dt: Any) -> Any:
    for k in range(5):
        self.u += self.t
        self.advance(dt)
        if self.n == 3:
            break
        self.t += 0.5 * k
    return self.t


def in_a_while(self: Any, dt: Any) -> None:
    while self.t < 3.0:
        self.t += dt
        self.n += 1
        if self.u[self.n % 4] > 2.0:
            self.t = -1.0
            self.n = 2 * self.n
            self.single = np.float32(0.5)
            break


def in_branches(self: Any, dt: Any) -> None:
    if self.u[1] > dt:
        self.v = self.u + 1.0
        self.t = 7.0
    else:
        self.t = self.t - dt
    if self.u[2] > 100.0:
        self.n = 2.5
        self.u = self.v * 2.0
        self.kind = 2


def arrays(self: Any, dt: Any) -> Any:
    old = self.u
    self.u = self.u + dt * self.v
    self.u[0] = 9.0
    self.u, self.v = self.v, self.u
    self.part = self.v[1:]
    self.pair = [self.t, old]
    return old[0], self.u


def arrays_in_a_loop(self: Any, dt: Any) -> None:
    for _ in range(3):
        self.u = self.u + dt
        self.renew()


def updates_what_it_was(self: Any, dt: Any) -> None:
    def renewed() -> Any:
        self.renew()
        return self.t

    self.u += renewed() + dt
    for _ in range(2):
        self.t = self.u[1]
        self.u, self.v = self.v, self.u


def leaves_early(self: Any, dt: Any) -> Any:
    self.t += dt
    if self.u[0] < 1.0:
        self.n += 1
        return self.t
    self.t += 100.0
    return self.t


def plain(value: Any) -> Any:
    """Return a value with its types, arrays by their bytes."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.tolist()
    if isinstance(value, list | tuple):
        return type(value), [plain(one) for one in value]
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return {name: plain(one) for name, one in vars(value).items()}
    return type(value), value


FUNCTIONS = [
    counts, replaces, types_change, numpy_types, of_attributes, by_methods, in_a_loop, in_a_while,
    in_branches, arrays, arrays_in_a_loop, updates_what_it_was, leaves_early,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_attributes_are_set_as_python_sets_them(function: Callable[..., Any], backend: str) -> None:
    run, given, expected = cd(function, backend=backend), State(), State()
    for dt in (0.5, 0.25, 1.5):
        assert plain(run(given, dt)) == plain(function(expected, dt))
        assert plain(given) == plain(expected)


def test_the_value_is_no_constant_of_the_code() -> None:
    run = cd(by_methods, backend="numpy")
    given = State()
    for _ in range(8):
        run(given, 0.5)
    assert (given.t, given.n, type(given.n)) == (12.0, 16, int)
    assert len({id(run.specialise(one, 0.5)) for one in (given, State())}) == 1


def pair(a: Any, b: Any) -> Any:
    a.t += 1.0
    b.t *= 2.0
    return a.t, b.t


@pytest.mark.parametrize("kind", [Record, Slotted, State])
def test_two_names_of_one_object_are_one(kind: Callable[[], Any]) -> None:
    run = cd(pair, backend="numpy")
    one, two, three, four = kind(), kind(), kind(), kind()
    for a, b, x, y in ((one, two, three, four), (one, one, three, three), (two, one, four, three)):
        assert run(a, b) == pair(x, y)
    assert (one.t, two.t) == (three.t, four.t)


@pytest.mark.parametrize("owner", [types.ModuleType("module"), type("Counter", (), {})])
def test_modules_and_classes_are_not_assigned(owner: Any) -> None:
    owner.n = 3
    with pytest.raises(pe.CdError, match="CD0418.*which other names lead to"):
        pe.cd_from_source("def f():\n    owner.n += 1\n", {"owner": owner})()
    assert owner.n == 3


class Moving(State):
    def bump(self) -> int:
        self.n += 2
        return self.n

    def doubled(self) -> float:
        self.u = self.u * 2
        return 1.0


def _by_slices(o: Any, x: Any) -> Any:
    total = 0.0
    for _ in range(3):
        total += x[o.n : o.bump()].sum()
    return total


def _by_subscripts(o: Any, x: Any) -> Any:
    total = 0.0
    for _ in range(3):
        total += x.reshape(10, 10)[o.n, o.bump()]
    return total


def _of(a: Any, b: Any) -> Any:
    return 10 * a + b


def _by_keywords(o: Any, x: Any) -> Any:
    total = 0.0
    for _ in range(3):
        total += _of(o.n, b=o.bump())
    return total


def _by_arrays(o: Any, x: Any) -> Any:
    total = 0.0
    for _ in range(3):
        y = o.u + o.doubled()
        total += y.sum() + _of(o.u, o.doubled())[0]
    return total


@pytest.mark.parametrize("plain", [_by_slices, _by_subscripts, _by_keywords, _by_arrays])
def test_what_stands_before_a_call_is_as_before_it(plain: Any, backend: str) -> None:
    made, x = pe.cd(plain).on(backend), np.arange(100.0)
    one, other = Moving(), Moving()
    for o in (one, other):
        o.n, o.u = 0, np.ones(2)
    assert made(one, x) == plain(other, x)
    assert (one.n, one.u.tolist()) == (other.n, other.u.tolist())


class Ruled(State):
    frozen = property(lambda self: self.t)

    @property
    def energy(self) -> Any:
        return self.t + self.u.sum()

    @property
    def level(self) -> Any:
        return self.t

    @level.setter
    def level(self, value: Any) -> None:
        self.t = value


def reads_properties(self: Any, v: Any) -> Any:
    before = self.energy
    self.u += v
    self.t += 1.0
    return before, self.energy, self.frozen


def reads_after_arrays(self: Any, v: Any) -> Any:
    self.u += v
    return self.energy


@pytest.mark.parametrize("function", [reads_properties, reads_after_arrays])
def test_properties_see_what_the_function_has_written(function: Callable[..., Any]) -> None:
    run, given, expected = cd(function, backend="numpy"), Ruled(), Ruled()
    for _ in range(2):
        assert run(given, np.ones(4)) == function(expected, np.ones(4))


def stops(self: Any, x: Any) -> None:
    self.t += 1.0
    self.u += 1.0
    if x > 0:
        raise ValueError("too large")
    self.n += 1


def test_a_call_that_ends_with_an_error_sets_no_attribute() -> None:
    given, run = State(), cd(stops, backend="numpy")
    with pytest.raises(ValueError, match="too large"):
        run(given, 1.0)
    assert (given.t, given.n) == (0.0, 0)
    run(given, -1.0)
    assert (given.t, given.n) == (1.0, 1)


def sets_on_one_side(self: Any, x: Any) -> None:
    if x > 0:
        self.new = x


def sets_a_property(self: Any, x: Any) -> None:
    self.level = x


def sets_a_function(self: Any, x: Any) -> None:
    self.f = lambda y: y + x


def sets_in_an_expression(self: Any, x: Any) -> Any:
    return self.advance(x) if x > 0 else 0.0


def sets_at_every_point(self: Any, x: Any) -> Any:
    return [self.advance(k) for k in range(100)]


def sets_a_text(self: Any, x: Any) -> None:
    for _ in range(3):
        self.name = self.name + "b"


def shares_in_a_loop(self: Any, x: Any) -> None:
    for _ in range(3):
        self.u = self.u * x
        self.v = self.u


def shares_on_one_side(self: Any, x: Any) -> None:
    if x > 0:
        self.v = self.u


REFUSED = [
    (shares_in_a_loop, "CD0208", "`self.v` and `self.u` are one array in Python"),
    (shares_on_one_side, "CD0202", "`self.v` may be one of two arrays"),
    (sets_on_one_side, "CD0202", "`self.new` is set on one side of an `if` only"),
    (sets_a_property, "CD0418", "`self.level = ...` would rebind a property of `Ruled`"),
    (sets_a_function, "CD0418", "`self.f = ...` would rebind an attribute to a function"),
    (sets_in_an_expression, "CD0418", "`self.t [+]= ...` would run where a test inside an"),
    (sets_at_every_point, "CD0418", "`self.t [+]= ...` would run at every point"),
    (sets_a_text, "CD0208", "`self.name` is str 'a' before the loop"),
]


@pytest.mark.parametrize(("function", "code", "text"), REFUSED)
def test_what_cannot_be_set_is_refused(function: Any, code: str, text: str) -> None:
    with pytest.raises(pe.CdError, match=rf"{code}(.|\n)*{text}"):
        cd(function, backend="numpy")(Ruled(), 1.0)


def test_routines_do_not_set_attributes() -> None:
    with pytest.raises(pe.CdError, match=r"CD0418(.|\n)*`self.t` is assigned, and a linked"):
        cd(counts, backend="numpy").compile(State(), 1.0)


def test_the_trace_calls_an_attribute_as_the_source_does() -> None:
    given = State()
    with pe.trace() as taken:
        cd(by_methods, backend="numpy")(given, 0.5)
    assert "self.t = self.t{=0.5} + dt{=1.0}    0.0 -> 1.5" in str(taken)


def test_compared_backends_start_from_the_same_object() -> None:
    given = State()
    assert pe.compare(types.MethodType(cd(by_methods), given), (0.5,))
    assert (given.t, given.n) == (0.0, 0)


class _Twice:
    def __get__(self, owner: Any, kind: type) -> Any:
        return owner.t * 2


class Computing:
    own = _Twice()

    def __init__(self) -> None:
        self.t = 1.0

    @functools.cached_property
    def cached(self) -> float:
        return self.t * 2

    def __getattr__(self, name: str) -> Any:
        if name == "missing":
            return self.t * 2
        raise AttributeError(name)

    @property
    @cd
    def compiled(self) -> float:
        return self.t * 2


@pytest.mark.parametrize("name", ["own", "cached", "missing"])
def test_what_python_computes_of_assigned_attributes_is_refused(name: str) -> None:
    made = pe.cd_from_source(f"def f(o):\n    o.t += 1\n    return o.{name}\n")
    with pytest.raises(pe.CdError, match=f"CD0418.*`o.{name}` is computed by Python"):
        made(Computing())
    before = pe.cd_from_source(f"def f(o):\n    y = o.{name}\n    o.t += 1\n    return y\n")
    assert before(Computing()) == 2.0


def test_properties_that_are_compiled_functions_see_what_was_assigned() -> None:
    made = pe.cd_from_source("def f(o):\n    o.t += 1\n    return o.compiled\n")
    assert made(Computing()) == 4.0


class Scaled:
    def __init__(self) -> None:
        self.q, self.w = 1, np.ones(2)

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        return value * 10 if name == "q" else value


@pytest.mark.parametrize(
    "body", ["o.q = o.q + 1\n    return o.q", "o.q += 1", "o.t = 1\n    return o.q"]
)
def test_attributes_that_a_class_computes_are_read_and_not_assigned(body: str) -> None:
    scaled = Scaled()
    f = pe.cd_from_source("def f(o):\n    return o.w * o.q", {}, backend="numpy")
    for q in (1, 2):
        object.__setattr__(scaled, "q", q)
        assert f(scaled).tolist() == [10.0 * q] * 2
    with pytest.raises(pe.CdError, match="whose `__getattribute__` says what it then is"):
        pe.cd_from_source(f"def f(o):\n    {body}", {}, backend="numpy")(scaled)
    assert vars(scaled)["q"] == 2
    assert "t" not in vars(scaled)


class Pair:
    def __init__(self) -> None:
        self.state, self.last, self.n = (0.0, 1), None, 1

    def step(self, v: Any) -> Any:
        self.state = (self.state[0] + v, self.state[1] + 1)
        self.n += v
        return self.state[0]


def steps(self: Any, x: Any) -> Any:
    s = 0.0
    for v in x:
        s += self.step(v)
        if s > 3:
            self.state = (0, self.state[1])
    return s, self.state


def exchanges(self: Any, x: Any) -> Any:
    while self.state[1] < 9:
        old = self.state
        self.state = (old[0] + x[0], old[1] + 1)
        if old[0] > 1:
            return old
    return self.state


def first_of_all(self: Any, x: Any) -> Any:
    for k in range(len(x)):
        self.last = (x[k], k) if self.last is None else (self.last[0] + x[k], k)
    return self.last


@pytest.mark.parametrize("method", [steps, exchanges, first_of_all])
def test_a_loop_carries_a_tuple_that_is_an_attribute(method: Callable[..., Any]) -> None:
    ours, theirs = Pair(), Pair()
    x = np.array([0.5, 2.0, 1.5, -0.25])
    assert cd(method)(ours, x) == method(theirs, x)
    assert vars(ours) == vars(theirs)
