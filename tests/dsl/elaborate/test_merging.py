"""`p.grad.merge`: another version of a field, which is read by one routine of one field."""

from __future__ import annotations

import pytest

import plusequals as pe
from plusequals import cd
from plusequals.idx import i


def tensor() -> pe.Tensor:
    return pe.tensor("p", 2, dtype="float64", init=1.0)


def test_the_value_may_be_left_out() -> None:
    p = tensor()

    @cd
    def one(p):
        p += p.merge

    @cd
    def two(p):
        p.value[i] += p.value.merge[i]

    for function in (one, two):
        routine = function.compile(p).link(pe.device("numpy").stream().context())
        assert routine.merge_input is p.value and routine.inputs == (p.value,)
        routine.context.merge_into(routine, p)
        routine()
    assert p.numpy().tolist() == [4, 4]


def test_one_field_may_be_read_several_times() -> None:
    p = tensor()

    @cd
    def twice(p):
        p.grad[i] = p.grad.merge[i] * p.grad.merge[1 - i]

    routine = twice.compile(p).link(pe.device("numpy").stream().context())
    p.grad[...] = [2, 5]
    routine.context.from_host(p.grad)
    routine.context.merge_into(routine, p.grad)
    routine()
    assert p.grad.numpy().tolist() == [10, 10]


def test_the_tensor_may_be_an_element_of_a_list() -> None:
    p, q = tensor(), tensor()
    function = pe.cd_from_source("def f(ps):\n    ps[1].grad += ps[1].grad.merge\n")
    routine = function.compile([p, q]).link(pe.device("numpy").stream().context())
    assert routine.merge_input is q.grad
    q.grad[...] = [2, 5]
    routine.context.from_host(q.grad)
    routine.context.merge_into(routine, q.grad)
    routine()
    assert q.grad.numpy().tolist() == [4, 10]


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("p.grad.merge[i] = p[i]", "CD0832", "`p.grad.merge` is written"),
        ("p[i] = p.merge[i] + p.grad.merge[i]", "CD0832", "one routine merges one array"),
        ("p[i] = p.grad.merge.merge[i]", "CD0831", "no `.merge` of its own"),
        ("p[i] = p.merge.grad[i]", "CD0414", "write it so: `p.grad.merge`"),
        ("p[i] = p.value.grad[i]", "CD0414", "write it so: `p.grad`"),
        ("p[i] = x.merge[i]", "CD0831", "only a field of a tensor"),
    ],
)
def test_what_is_refused(line: str, code: str, says: str) -> None:
    function = pe.cd_from_source(f"def f(p, x):\n    {line}\n")
    with pytest.raises(pe.CdError) as caught:
        function.compile(tensor(), tensor().numpy())
    assert code in str(caught.value) and says in str(caught.value)


def test_a_plain_call_has_no_merge_buffer() -> None:
    p = tensor()
    function = pe.cd_from_source("def f(p):\n    p += p.merge\n")
    with pytest.raises(pe.CdError, match="CD0844"):
        function(p)
    assert p.numpy().tolist() == [1, 1]
