"""`f.compile(...)`: tensors are bound, arrays and numbers only described, captures taken as now."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.backends.runtime.parameter_slots import Argument, Resident
from plusequals.idx import i


class Model:
    def __init__(self) -> None:
        self.w = pe.tensor("w", 3, dtype="float64", init=2.0)


def test_tensors_are_bound_wherever_they_come_from() -> None:
    model, shift = Model(), np.ones(3)

    @cd
    def step(m, x, rate):
        m.w[i] = m.w[i] + rate * x[i] + shift[i]

    code = step.compile(model, np.zeros(3), 0.5)
    kinds = {str(getattr(slot, "name", "w")): type(slot) for slot in code.slots}
    assert kinds == {"w": Resident, "x": Argument, "rate": Argument, "shift": Argument}
    routine = code.link(pe.device("numpy").stream().context())
    shift = np.zeros(3)  # a routine goes on with what was captured when it was compiled
    routine(x=np.full(3, 2.0))
    assert model.w.numpy().tolist() == [4, 4, 4] and routine.outputs == (model.w.value,)


def test_a_method_is_compiled_for_its_object() -> None:
    class Net(Model):
        @cd
        def grow(self, x):
            self.w[i] += x[i]

    net = Net()
    code = net.grow.compile(np.zeros(3), name="more")
    assert code.name == "more" and code.names == ("x",)
    stream = pe.device("numpy").stream(threaded=False)
    code.link(stream.context())(np.ones(3))
    assert net.w.numpy().tolist() == [3, 3, 3]
    other = Net()

    @cd
    def down(m):
        m.w[i] *= 0.5

    train = pe.DataParallel(other.grow, down, [stream], (), (other,))
    train(np.ones(3))
    assert other.w.numpy().tolist() == [1.5] * 3 and net.w.numpy().tolist() == [3, 3, 3]


def half(x):
    return x * 0.5


def test_comments_are_part_of_the_name_of_a_routine() -> None:
    @cd
    def step(p):
        with comment("smooth, twice"):
            p[i] = half(p[i])
            p[...] = half(p)
        p[0] = 1.0
        with comment("shift by 1"):
            p[i] += 1

    p = pe.tensor("p", 3, dtype="float64", init=4.0)
    code = step.compile(p)
    assert code.name == "step_smooth_twice_then_shift_by_1"
    routine = code.link(pe.device("numpy").stream().context())
    assert "step_smooth_twice_then_shift_by_1" in repr(routine)
    assert step.compile(p, name="other").name == "other"
    assert cd(half).compile(np.ones(2)).name == "half"


def test_an_argument_that_comes_back_is_that_of_the_call() -> None:
    p, shift = pe.tensor("p", 3, dtype="float64", init=1.0), np.ones(3)

    @cd
    def step(p, x, pair):
        p[i] += x[i]
        return x, pair[1][::2], shift, p.sum()

    code = step.compile(p, np.ones(3), (np.zeros(3), np.zeros(3)))
    routine = code.link(pe.device("cc").stream().context())
    x, y = np.arange(3.0), np.arange(3.0) + 5
    same, part, captured, total = routine(x, **{"pair[1]": y})
    assert same is x and np.shares_memory(part, y) and part.tolist() == [5.0, 7.0]
    assert captured is shift and total == 6.0


def test_what_is_compiled_is_of_no_backend_and_runs_on_every_one() -> None:
    p = pe.tensor("p", 2, dtype="float64", init=1.0)

    @cd
    def double(p):
        p[i] = 2.0 * p[i]

    code = double.compile(p, name="twice")
    assert code.name == "twice" and not code.names
    for backend in ("numpy", "cc"):
        routine = code.link(pe.device(backend).stream().context())
        routine()
        assert routine.context.numpy(p)[0] in (2, 4)


def test_a_routine_returns_what_the_function_returns() -> None:
    p = pe.tensor("p", (2, 3), init=1.0)

    @cd
    def both(p):
        return np.sum(p), p.T

    routine = both.compile(p).link(pe.device("numpy").stream().context())
    total, turned = routine()
    assert total == 6 and turned.shape == (3, 2)


def test_compiling_raises_what_a_call_would() -> None:
    @cd
    def wrong(p):
        p[i] = p.velocity[i]

    with pytest.raises(pe.CdError, match="velocity"):
        wrong.compile(pe.tensor("p", 2))
    with pytest.raises(pe.CdError, match="CD0436"):
        wrong.compile()


def test_what_was_compiled_serves_again_as_long_as_it_means_the_same() -> None:
    factor, table = 2.0, np.ones(3)

    @cd
    def step(p, x):
        p[i] = factor * x[i] + table[i]

    p, q = (pe.tensor(name, 3, dtype="float64") for name in "pq")
    first = step.compile(p, np.zeros(3))
    again = step.compile(q, np.ones(3), name="again")
    assert again.codes is first.codes and again.name == "again"
    assert [slot.field for slot in again.slots if isinstance(slot, Resident)] == [q.value]
    table = np.full(3, 5.0)  # another array, to be taken by what is compiled from now on
    later = step.compile(p, np.zeros(3))
    assert later.codes is first.codes
    routine = later.link(pe.device("numpy").stream(threaded=False).context())
    routine(np.ones(3))
    assert p.numpy().tolist() == [7.0] * 3
    factor = 3.0  # a constant of the code
    assert step.compile(p, np.zeros(3)).codes is not first.codes
    factor = 2.0
    assert step.compile(p, np.zeros(3)).codes is first.codes
    assert step.compile(pe.tensor("r", 3), np.zeros(3)).codes is not first.codes, "another type"
    assert step.compile(p, table).codes is not first.codes, "it is given what it captures"


def test_a_tensor_given_twice_in_a_tuple_is_compiled_for_that() -> None:
    @cd
    def move(y, pair):
        p, q = pair
        p[:] = q[::-1]
        y[i] = p[i] - q[i]

    y, p, q = (pe.tensor(name, 3, dtype="float64", init=np.arange(3.0)) for name in "ypq")
    apart, same = move.compile(y, (p, q)), move.compile(y, (p, p))
    assert len(apart.slots) == 3 and len(same.slots) == 2
    assert move.compile(y, (q, p)).codes is apart.codes
    assert move.compile(y, (p, p)).codes is not apart.codes
    same.link(pe.device("numpy").stream(threaded=False).context())()
    assert y.numpy().tolist() == [0.0] * 3 and p.numpy().tolist() == [2.0, 1.0, 0.0]


@pytest.mark.parametrize("memory", ["local", "virtual", None])
def test_a_tensor_without_an_array_given_twice_is_one(memory: str | None) -> None:
    @cd
    def both(y, s, t):
        s[i] = 1.0
        y[i] = t[i] + 1.0

    @cd
    def captured(y, s):
        s[i] = 3.0
        y[i] = t[i] + 1.0

    @cd
    def grouped(y, pair):
        s, u = pair
        s.grad[i] = 4.0
        y[i] = u.grad[i] + 1.0

    y, s, t = np.zeros(3), *(pe.tensor(n, 3, dtype="float64", memory=memory) for n in "st")
    if memory != "virtual":  # or the second one has nothing that computes it
        both(y, s, t)
        assert y.tolist() == [1.0] * 3
    for _ in range(2):
        both(y, t, t)
        assert y.tolist() == [2.0] * 3
        captured(y, t)
        assert y.tolist() == [4.0] * 3
        grouped(y, (t, t))
        assert y.tolist() == [5.0] * 3
    if memory == "local":
        both(y, s, t)
        assert y.tolist() == [1.0] * 3
        z = pe.tensor("z", 3, dtype="float64")
        code = both.compile(z, t, t)
        assert len(code.fleeting) == 1 and len(both.compile(z, s, t).fleeting) == 2


def test_a_tensor_given_twice_is_compiled_for_that() -> None:
    @cd
    def move(p, q):
        p[:] = q[::-1]

    p, q = (pe.tensor(name, 3, dtype="float64", init=np.arange(3.0)) for name in "pq")
    apart, same = move.compile(p, q), move.compile(p, p)
    assert move.compile(q, p).codes is apart.codes and move.compile(p, p).codes is not apart.codes
    routine = same.link(pe.device("numpy").stream(threaded=False).context())
    routine()
    assert p.numpy().tolist() == [2.0, 1.0, 0.0]
