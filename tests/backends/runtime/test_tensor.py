"""Persistent tensors: fields, snapshots, writing on the host."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from pickle import dumps, loads
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd


@cd
def more(p):
    p.value += 1


def test_a_tensor_has_its_value_gradient_and_declared_fields() -> None:
    p = pe.tensor("p", (2, 3), dtype="float64", init=2.0, fields=("vel",))
    assert p.fields == ("value", "grad", "vel") and p.shape == (2, 3)
    assert p.numpy().tolist() == [[2.0] * 3] * 2 and not p.numpy("vel").any()
    assert repr(p) == "tensor p: f64[2, 3]"


def test_a_snapshot_is_read_only_and_never_changes() -> None:
    p = pe.tensor("p", 2, init=[1, 2])
    before = p.numpy()
    p[0] = 5
    with p.edit("grad") as grad:
        grad += 1
    assert before.tolist() == [1, 2] and p.numpy().tolist() == [5, 2]
    assert np.asarray(p).tolist() == [5, 2] and p.numpy("grad").tolist() == [1, 1]
    with pytest.raises(ValueError, match="read-only"):
        before[0] = 3


def test_what_is_refused_says_what_there_is() -> None:
    p = pe.tensor("p", 2, constant=True)
    with pytest.raises(pe.CdError, match="declared fields: value, grad"):
        p.numpy("velocity")
    with pytest.raises(pe.CdError, match="constant"):
        p[0] = 1
    with pytest.raises(pe.CdError, match="CD0701"):
        pe.tensor("q", 2, dtype="datetime64[s]")


@pytest.mark.parametrize("label", ["", "a\0b", "two\nlines", 3])
def test_a_label_is_printable_text(label: object) -> None:
    with pytest.raises(ValueError, match="CD0857"):
        pe.tensor(label, (2,))


@pytest.mark.parametrize("name", ["merge", "shape", "label", "x y", "class", "1st", "numpy"])
def test_a_field_has_a_name_that_is_free(name: str) -> None:
    with pytest.raises(ValueError, match=f"CD0857.*{name}"):
        pe.tensor("p", (2,), fields=("velocity", name))
    with pytest.raises(ValueError, match="CD0857.*`vel`"):
        pe.tensor("p", (2,), fields=("vel", "vel"))
    assert pe.tensor("p", (2,), fields=("grad", "value")).fields == ("value", "grad")


def test_what_edit_gave_is_read_only_afterwards() -> None:
    p = pe.tensor("p", (3,))
    with p.edit() as array:
        array[0] = 5
    with pytest.raises(ValueError, match="read-only"):
        array[1] = 77
    with p.edit() as array:
        array[1] = 6
    assert p.numpy().tolist() == [5, 6, 0]


@pytest.mark.parametrize("dtype", [">f8", ">i2", ">c8", np.dtype("float32").newbyteorder()])
def test_elements_lie_as_this_machine_has_them(dtype: object, tmp_path: Path) -> None:
    p = pe.tensor("p", 3, dtype=dtype, init=[1, 2, 3])
    assert p.numpy().dtype.isnative and p.dtype.numpy == np.dtype(dtype).newbyteorder()
    more.compile(p).link(pe.device("cc").stream(threaded=False).context())()
    assert p.numpy().tolist() == [2, 3, 4]
    pe.save(tmp_path / "p.npz", p)
    p[...] = 0
    pe.load(tmp_path / "p.npz", p)
    assert p.numpy().tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (pe.f64, "float64"),
        (pe.i8, "int8"),
        (pe.c64, "complex64"),
        (None, "float32"),
        (int, "int64"),
    ],
)
def test_an_element_type_is_named_as_in_functions_or_as_in_numpy(dtype: object, name: str) -> None:
    assert pe.tensor("p", 2, dtype=dtype).dtype.name == name


def test_numbers_of_16_bits_are_named_as_in_functions() -> None:
    pytest.importorskip("ml_dtypes")
    assert pe.tensor("p", 2, dtype=pe.bf16, init=1.5).numpy().tolist() == [1.5, 1.5]


def pickled(p: Any) -> Any:
    return loads(dumps(p))  # noqa: S301


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_is_a_tensor_of_its_own(copied: Callable[[Any], Any]) -> None:
    p = pe.tensor("p", 2, dtype="float64", init=[1, 2], fields=("vel",))
    p.vel[...] = 3
    more.compile(p).link(pe.device("cc:1").stream(threaded=False).context())()
    q = copied(p)
    assert (q.label, q.fields, q.dtype) == (p.label, p.fields, p.dtype)
    assert q.numpy().tolist() == [2, 3] and q.vel.numpy().tolist() == [3, 3]
    q[...] = 9
    assert p.numpy().tolist() == [2, 3] and q.value.tensor is q


@pytest.mark.parametrize(
    "options",
    [
        {"constant": True, "init": 3},
        {"memory": "virtual"},
        {"memory": "on-device, per-stream"},
    ],
)
def test_a_copy_is_what_was_asked_for(options: dict[str, Any]) -> None:
    p = pe.tensor("p", 2, **options)
    for q in (copy.copy(p), copy.deepcopy(p), pickled(p)):
        assert type(q) is type(p) and (q.constant, q.memory) == (p.constant, p.memory)
        assert q is not p and q.request == p.request


def test_what_holds_a_tensor_is_copied_with_it() -> None:
    p = pe.tensor("p", 2, init=1.0)
    held = {"p": p, "grad": p.grad}
    there = copy.deepcopy(held)
    assert there["p"] is not p and there["grad"] is there["p"].grad
