"""Virtual tensors computed again by later routines: of the same versions, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.idx import i, k
from tests.backends.runtime.test_device import context, tensor
from tests.backends.runtime.test_queue import BOTH


@cd
def first(t, y, a):
    t[i] = a[i] * 2.0
    y[i] = t[i] + 1.0


@cd
def second(z, t):
    z[i] = t[i] * 10.0


@cd
def third(u, z, t, b):
    u[i] = t[i] + b[i]
    z[i] = u[i]


@cd
def slopes(t, y, a):
    t[i] = a[i] * 3.0
    t.grad[i] = a[i] + a.grad[i]
    y[i] = t[i] + t.grad[i]


@cd
def both(z, t):
    z[i] = t[i] - t.grad[i]


A34 = np.arange(12.0).reshape(3, 4)


def virtual(label: str = "t", size: int = 2) -> pe.Tensor:
    return pe.tensor(label, size, dtype="float64", memory="virtual")


class Scene:
    """The first routine, linked; what is linked behind it goes into its context."""

    def __init__(self, backend: str = "numpy", threaded: bool = False) -> None:
        self.a, self.y, self.z = tensor("a"), tensor("y"), tensor("z")
        self.t = virtual()
        self.code = first.compile(self.t, self.y, self.a)
        self.routine = self.code.link(context(backend, threaded))

    def later(self, function: Any = second, **named: Any) -> Any:
        code = function.compile(self.z, self.t, inline={self.t: self.code}, **named)
        return code.link(self.routine.context)


@pytest.mark.parametrize("device", ["numpy", "cc"])
@BOTH
def test_a_virtual_tensor_is_computed_again(device: str, threaded: bool) -> None:
    scene = Scene(device, threaded)
    later = scene.later()
    assert later.inputs == (scene.a.value,) and later.outputs == (scene.z.value,)
    for n in range(3):
        scene.a[...] = n + 1.0
        scene.routine()
        later()
        later()
        assert scene.z.numpy().tolist() == [20.0 * (n + 1)] * 2
        assert scene.y.numpy().tolist() == [2.0 * (n + 1) + 1] * 2


@BOTH
def test_a_changed_input_is_refused_until_it_is_computed_again(threaded: bool) -> None:
    scene = Scene("numpy", threaded)
    later = scene.later()
    scene.routine()
    later()
    change = second.compile(scene.a, scene.t, inline={scene.t: scene.code})

    def by_host() -> None:
        scene.a[...] = 5.0

    def by_a_routine() -> None:  # which computes the tensor again itself, and then changes it
        change.link(scene.routine.context)()

    def by_a_transfer() -> None:
        scene.a[...] = 6.0
        scene.routine.context.from_host(scene.a)

    for spoil in (by_host, by_a_routine, by_a_transfer):
        spoil()
        before = scene.z.value.clock
        for _ in range(2):
            with pytest.raises(ValueError, match=r"(?s)CD0859.*`t`.*`first`.*version of `a`"):
                later()
        assert scene.z.value.clock == before
        scene.routine()
        later()
        assert scene.z.numpy().tolist() == (scene.a.numpy() * 20.0).tolist()


def test_a_version_that_is_back_is_the_same_one() -> None:
    scene = Scene("numpy:1")
    later = scene.later()
    scene.routine()
    with pe.override(automatic_host_transfers=False):
        scene.a[...] = 9.0
        later()  # its own array is what it was
        assert later.context.numpy(scene.z).tolist() == [20.0, 20.0]
        scene.routine.context.from_host(scene.a)
        with pytest.raises(ValueError, match="CD0859"):
            later()


def test_it_has_to_be_linked_and_called_before() -> None:
    scene = Scene()
    code = second.compile(scene.z, scene.t, inline={scene.t: scene.code})
    for elsewhere in (context(), scene.routine.context.parent):
        assert elsewhere is not None
        with pytest.raises(ValueError, match="(?s)CD0858.*`second` reads `t`.*`first`"):
            code.link(elsewhere)
    with pytest.raises(ValueError, match="CD0858"):
        pe.Batch(code, scene.code).link(context())
    later = code.link(scene.routine.context)
    with pytest.raises(ValueError, match="(?s)CD0850.*`t`, which nothing has computed"):
        later()
    scene.routine()
    later()
    one, two = pe.Batch(scene.code, code).link(context())
    with pytest.raises(ValueError, match="CD0850"):
        two()  # the run of another routine says nothing
    one()
    two()


def test_two_routines_of_one_function_are_one_computation() -> None:
    scene = Scene()
    again = scene.code.link(scene.routine.context)
    later = second.compile(scene.z, scene.t, inline={scene.t: scene.code}).link(again.context)
    scene.routine()
    later()
    scene.a[...] = 4.0
    with pytest.raises(ValueError, match="CD0859"):
        later()
    again()
    later()
    assert scene.z.numpy().tolist() == [80.0, 80.0]


@pytest.mark.parametrize("device", ["numpy", "cc"])
def test_what_is_inlined_can_be_inlined(device: str) -> None:
    scene, u, b, w = Scene(device), virtual("u"), tensor("b"), tensor("w")
    middle = third.compile(u, scene.z, scene.t, b, inline={scene.t: scene.code})
    linked = middle.link(scene.routine.context)
    last = second.compile(w, u, inline={u: middle}, name="last").link(linked.context)
    assert set(last.inputs) == {scene.a.value, b.value}
    scene.routine()
    with pytest.raises(ValueError, match="CD0850"):
        last()
    linked()
    last()
    assert w.numpy().tolist() == [30.0, 30.0] and scene.z.numpy().tolist() == [3.0, 3.0]
    scene.a[...] = 2.0
    with pytest.raises(ValueError, match="CD0859"):
        last()
    with pytest.raises(ValueError, match="CD0859"):
        linked()
    scene.routine()
    linked()
    last()
    assert w.numpy().tolist() == [50.0, 50.0]


def test_two_tensors_of_two_functions() -> None:
    scene, u, w = Scene(), virtual("u"), tensor("w")
    other = first.compile(u, w, scene.y, name="other")
    behind = other.link(scene.routine.context)
    text = "def f(z, t, u):\n    z[i] = t[i] * u[i]\n"
    code = pe.cd_from_source(text).compile(
        scene.z, scene.t, u, inline={scene.t: scene.code, u: other}
    )
    routine = code.link(behind.context)
    scene.routine()
    behind()
    routine()
    assert scene.z.numpy().tolist() == [12.0, 12.0]
    scene.routine()  # writes what the other one reads
    with pytest.raises(ValueError, match=r"CD0859.*`u`.*`other`.*`y`"):
        routine()


def test_what_was_put_together_serves_again() -> None:
    scene, other = Scene(), Scene()
    one, two = (
        second.compile(each.z, each.t, inline={each.t: each.code}) for each in (scene, other)
    )
    assert one.codes is two.codes and one.slots != two.slots
    same = second.compile(scene.a, scene.t, inline={scene.t: scene.code})
    assert same.codes is not one.codes and len(same.slots) == 1


def test_fields_are_taken_by_their_names() -> None:
    a, y, z, t = tensor("a"), tensor("y"), tensor("z"), virtual()
    code = slopes.compile(t, y, a)
    routine = code.link(context())
    later = both.compile(z, t, inline={t: code}).link(routine.context)
    assert later.inputs == (a.value, a.grad)
    routine()
    later()
    assert z.numpy().tolist() == [2.0, 2.0]
    a.grad[...] = 7.0
    with pytest.raises(ValueError, match=r"CD0859.*`t`, `t\.grad`.*`a\.grad`"):
        later()
    with pytest.raises(TypeError, match=r"(?s)CD0851.*`t\.grad`|CD0851.*`t`"):
        both.compile(z, t).link(routine.context)


@pytest.mark.parametrize("size", [0, 1, 7, 33])
@pytest.mark.parametrize("device", ["numpy", "cc"])
def test_it_is_what_is_computed_where_it_is_kept(size: int, device: str) -> None:
    first = f"def f(t, s, a):\n    for n in range({size}):\n        t[n] = a[n] * 0.5 + s[n]\n"
    last = "def g(z, t):\n    z[i] = t[i] * t[i] + 1.0\n"
    content = np.random.default_rng(size).normal(size=size)
    found = []
    for memory in (None, "virtual"):
        t = pe.tensor("t", size, dtype="float64", memory=memory)
        a, s = (pe.tensor(n, size, dtype="float64", init=content) for n in "as")
        z = pe.tensor("z", size, dtype="float64")
        code = pe.cd_from_source(first).compile(t, s, a)
        table = {"inline": {t: code}} if memory else {}
        routine = code.link(context(device))
        later = pe.cd_from_source(last).compile(z, t, **table)
        later = later.link(routine.context)
        routine()
        later()
        found.append(z.numpy())
    assert np.array_equal(*found)


def test_it_may_write_what_it_reads_again() -> None:
    scene = Scene("cc")
    text = "def f(a, t):\n    a[i] += t[i]\n"
    code = pe.cd_from_source(text).compile(scene.a, scene.t, inline={scene.t: scene.code})
    routine = code.link(scene.routine.context)
    scene.routine()
    routine()
    assert scene.a.numpy().tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match="CD0859"):
        routine()


def test_traces_and_profiles_show_it() -> None:
    scene = Scene("numpy")
    later = scene.later()
    scene.routine()
    with pe.trace() as trace:
        later()
    assert "t[i] = a[i] * 2.0" in str(trace) and "z[i] = t[i] * 10.0" in str(trace)
    with pe.profile() as timeline:
        later()
    assert [work.name for work in timeline.works] == ["second"]
    assert scene.z.numpy().tolist() == [20.0, 20.0]


# ---------------------------------------------------------------- what is refused


def test_a_wrong_table_is_refused() -> None:
    scene = Scene()
    local = pe.tensor("l", 2, dtype="float64", memory="local")
    uses_local = first.compile(local, scene.y, scene.a)
    table: Any
    for table, words in [
        ([scene.t], "`inline=` is a list"),
        ({scene.t: first}, "`inline=` has a CdFunction beside `t`"),
        ({scene.t: scene.routine}, "`inline=` has a Routine beside `t`"),
        ({"t": scene.code}, "`inline=` has a str on its left"),
        ({scene.a: scene.code}, "`a` is kept"),
        ({local: uses_local}, "`l` is local"),
        ({virtual("v"): scene.code}, "`second` does not use `v`"),
        ({scene.t: second.compile(scene.z, scene.t)}, "`second` does not compute `t`"),
        ({scene.t: first.compile(virtual("t"), scene.y, scene.a)}, "`first` does not compute `t`"),
    ]:
        with pytest.raises(TypeError, match=f"CD0855.*{words}"):
            second.compile(scene.z, scene.t, inline=table)
    assert second.compile(scene.z, scene.y, inline={}).link(context()).inputs == (scene.y.value,)


def test_what_cannot_be_computed_again_is_refused() -> None:
    a, y, z, t = tensor("a"), tensor("y"), tensor("z"), virtual()
    shift = np.ones(2)
    for body, given, words in [
        ("t[i] = a[i] * x[i]", np.ones(2), "`x`, which is no tensor"),
        ("t[i] = a[i] * x", 2.0, "`x`, which is no tensor"),
        ("t[i] = a[i] * shift[i]", 2.0, "`shift`, which is no tensor"),
        ("t[i] = a.merge[i] * 2.0", 2.0, r"`a\.merge`, which is in a merge buffer"),
        ("t[i] = y[i]", 2.0, "`y`, which `f` writes"),
        ("y[i] = a[i]\n    t[i] = y[i] + 1.0", 2.0, "`y`, which `f` writes"),
    ]:
        text = f"def f(t, y, a, x):\n    {body}\n    y[i] = t[1 - i]\n"
        code = pe.cd_from_source(text, {"shift": shift}).compile(t, y, a, given)
        with pytest.raises(TypeError, match=f"CD0856.*`t`.*{words}"):
            second.compile(z, t, inline={t: code})
    text = "def f(t, y, a, x):\n    t[i] = a[i]\n    y[i] = t[i] * x\n"
    code = pe.cd_from_source(text).compile(t, y, a, 2.0)  # what it needs otherwise does not matter
    routine = code.link(context())
    later = second.compile(z, t, inline={t: code}).link(routine.context)
    routine(3.0)
    later()
    assert z.numpy().tolist() == [10.0, 10.0] and not later.compiled.names


def test_what_has_to_be_an_array_is_refused_as_in_one_function() -> None:
    scene = Scene("cc")
    text = "def f(z, a, t):\n    a[i] = 0.0\n    z[i] = t[1 - i]\n"
    table = {scene.t: scene.code}
    code = pe.cd_from_source(text).compile(scene.z, scene.a, scene.t, inline=table)
    with pytest.raises(TypeError, match="CD0572"):
        code.link(scene.routine.context)


def test_a_reduction_is_read_at_every_place() -> None:
    a, z = pe.tensor("a", (3, 4), dtype="float64", init=A34), tensor("z", size=3)
    t, y = virtual("t", 3), tensor("y", size=3)

    @cd
    def rows(t, y, a):
        t[i] = sum[k](a[i, k])
        y[i] = t[i]

    code = rows.compile(t, y, a)
    routine = code.link(context("cc"))
    routine()
    later = second.compile(z, t, inline={t: code}).link(routine.context)
    later()
    assert z.numpy().tolist() == [60.0, 220.0, 380.0]
