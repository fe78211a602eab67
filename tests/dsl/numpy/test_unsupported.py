"""What is known and refused: the message names the construct, the help what to write instead."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdError
from plusequals.dsl.numpy.table import refusal

from ..elaborate.numpy_oracle import compiled

REFUSED = (
    ("np.random.rand(3)", "random", "outside"),
    ("np.linalg.eig(m)", "np.linalg.eig", "outside"),
    ("np.linalg.svd(m)", "np.linalg.svd", "outside"),
    ("np.fft.fft(v)", "np.fft", "outside"),
    ("np.where(x > 0)", "one-argument", "np.where(condition, x, y)"),
    ("np.nonzero(x)", "run time", "found[n]"),
    ("np.unique(v)", "np.unique", "outside"),
    ("x.tolist()", "tolist", "keep the array"),
    ("x.nonzero()", "run time", "found[n]"),
    ("x.flat", ".flat", "ravel"),
    ("x.strides", "strides", "shape"),
    ("sum(x)", "first axis only", "np.sum"),
    ("max(x)", "first axis only", "np.max"),
    ("int(x)", "takes one number", "astype"),
    ("round(v)", "takes one number", "np.round"),
    ("math.floor(v)", "takes one number", "np.floor"),
    ("np.negative.at(v, idx)", "np.negative.at", "index letter"),
    ("np.add(x, y, where=b)", "where", "np.where"),
    ("np.repeat(v, idx)", "one number for all elements", "loop"),
    ("np.linalg.norm(x, 2)", "norm 2", "outside"),
    ("x[x > 0].argmax()", "masked selection", "np.where"),
    ("sorted(v)", "sorted", "np.sort"),
)


@pytest.mark.parametrize(("body", "message", "way_out"), REFUSED)
def test_a_refusal_names_the_construct_and_the_way_out(
    body: str, message: str, way_out: str
) -> None:
    with pytest.raises(pe.CdError) as caught:
        compiled(body)
    problem = caught.value.diagnostics[0]
    assert message in problem.message
    assert way_out in " ".join(problem.helps)


def test_only_what_is_known_is_refused() -> None:
    assert refusal(np.linalg.eig) is not None
    assert refusal(np.random.default_rng(0).random) is not None
    assert refusal(test_only_what_is_known_is_refused) is None


def _message(text: str, y: object, x: object) -> str:
    around = {"np": np, "pe": pe, "memory": pe.memory, "pad": pe.pad}
    with pytest.raises(CdError) as caught:
        pe.cd_from_source(f"def f(y, x):\n    {text}\n", around, backend="numpy")(y, x)
    return str(caught.value)


@pytest.mark.parametrize(
    ("y", "what"),
    [(None, "None"), ("abc", "str 'abc'"), ({}, "`dict`"), ({1}, "`set`"), (iter(""), "`str_")],
)
def test_a_letter_on_what_is_no_array_names_that(y: object, what: str) -> None:
    for text, name in (("y[i] = x[i] + 1", "y"), ("x[i] = y[i] + 1", "y")):
        message = _message(text, y, np.ones(4))
        assert f"CD0411]: `{name}` is " in message and what in message
        assert "and no array: `i` cannot index it" in message


_FOUR = np.ones(4)


@pytest.mark.parametrize(
    ("text", "y", "wanted", "unwanted"),
    [
        ("z = memory(y, 'virtual')", _FOUR, ("CD0412", "a statement of its own"), "pad("),
        ("memory(y, 'local')", pe.tensor("t", 4), ("memory(y.value,", "pe.tensor("), "memory(t,"),
        ("y[2 * i] = x[i]", _FOUR, ("CD0602", "`y` is written at", "help: restrict"), "pad("),
        ("y[i + 1] += x[i]", _FOUR, ("`y` is written at i + 1 = 4",), "clamp("),
        ("y[i] = x[2 * i + 1 - i]", _FOUR, ("`x` is read at", "clamp("), "written"),
        ("y[pad(i - 1)] = x[i]", _FOUR, ("CD0451", "`pad` says what is read"), "f64[]"),
        ("y[i] <<= 1", _FOUR, ("CD0404", "x.astype(np.int64)"), "float64)"),
        ("y <<= 1", _FOUR, ("CD0404", "x.astype(np.int64)"), "float64)"),
        ("raise x", _FOUR, ("CD0145",), "CD0762"),
        ("return exp()", _FOUR, ("`np.exp(x)`",), "leave the argument out"),
        ("return np.einsum(x, x)", _FOUR, ("as a text: `np.einsum('ij,jk",), "number"),
    ],
)
def test_help_that_fits_what_was_written(
    text: str, y: object, wanted: tuple[str, ...], unwanted: str
) -> None:
    message = _message(text, y, np.ones(4))
    assert all(part in message for part in wanted), message
    assert unwanted not in message, message
