"""Persistent tensors: fields, snapshots, writing on the host."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe


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
