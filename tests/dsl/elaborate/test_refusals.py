"""What is known and refused: the message names the construct, the help what to write instead."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.dsl.elaborate.refusals import refusal

from .numpy_oracle import compiled

REFUSED = (
    ("np.random.rand(3)", "random", "outside"),
    ("np.linalg.eig(m)", "np.linalg.eig", "outside"),
    ("np.linalg.svd(m)", "np.linalg.svd", "outside"),
    ("np.fft.fft(v)", "np.fft", "outside"),
    ("np.where(x > 0)", "one-argument", "np.where(condition, x, y)"),
    ("np.nonzero(x)", "run time", "np.where"),
    ("np.unique(v)", "np.unique", "outside"),
    ("x.tolist()", "tolist", "keep the array"),
    ("x.nonzero()", "run time", "np.where"),
    ("x.flat", ".flat", "ravel"),
    ("x.strides", "strides", "shape"),
    ("sum(x)", "first axis only", "np.sum"),
    ("max(x)", "first axis only", "np.max"),
    ("int(x)", "takes one number", "astype"),
    ("round(v)", "takes one number", "np.round"),
    ("math.floor(v)", "takes one number", "np.floor"),
    ("np.add.at(v, idx, 1.0)", "np.add.at", "index letter"),
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
