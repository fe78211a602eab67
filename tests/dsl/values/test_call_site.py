"""Arguments of handlers: what does not fit is refused before anything is emitted."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.values.call_site import Word, dtype_object, is_none
from plusequals.dsl.values.values import Static
from plusequals.lowering.ir import dtypes

from ..elaborate.numpy_oracle import assert_same_as_numpy, compiled

WRONG = (
    ("np.sum(x, axis=2)", "axis 2 is out of bounds"),
    ("np.sum(x, axis=(0, 0))", "given twice"),
    ("np.cumsum(x, where=b)", "where"),
    ("np.zeros(-1)", "negative"),
    ("np.zeros(2.5)", "has to be an integer"),
    ("np.zeros(3, dtype='nothing')", "not an element type"),
    ("np.add(x, y, out=3)", "`out` has to be an array"),
    ("np.pad(v, 1, mode='funny')", "has to be one of"),
    ("np.einsum(x, v)", "known while compiling"),
    ("math.sqrt(-1.0)", "not defined"),
    ("np.add(x)", "1 arguments"),
)


@pytest.mark.parametrize(("body", "message"), WRONG)
def test_arguments_that_do_not_fit_are_refused(body: str, message: str) -> None:
    with pytest.raises(pe.CdError) as caught:
        compiled(body)
    assert message in caught.value.diagnostics[0].message


@pytest.mark.parametrize(
    "name", ["f4", "float32", "f32", np.float32, np.dtype("f4"), dtypes.float32, Word("f32")]
)
def test_an_element_type_has_many_names(name: object) -> None:
    assert dtype_object(name) is dtypes.float32


def test_a_dtype_is_not_none_although_numpy_finds_them_equal() -> None:
    assert np.dtype("f8") == None  # noqa: E711 - this is the trap
    assert not is_none(Static(np.dtype("f8")))
    assert is_none(Static(None))


@pytest.mark.parametrize("made", ["np.zeros(3, '>f8')", "x.astype('>i4')", "np.ones(2, swapped)"])
def test_element_types_in_another_byte_order_are_refused(made: str) -> None:
    scope = {"np": np, "swapped": np.dtype(">f4")}
    with pytest.raises(pe.CdError, match="CD0447"):
        pe.cd_from_source(f"lambda x: {made}", globals=scope)(np.ones(3))


@pytest.mark.parametrize(
    "body",
    [
        "np.sum(x, axis=1, keepdims=np._NoValue, initial=np._NoValue, where=np._NoValue)",
        "np.max(x, initial=np._NoValue), np.std(x, ddof=1, correction=np._NoValue)",
        "o = np.zeros(3)\nnp.max(x, 1, o, keepdims=np._NoValue)",
    ],
)
def test_what_numpy_passes_on_for_nothing_is_no_argument(body: str) -> None:
    assert_same_as_numpy(body)
