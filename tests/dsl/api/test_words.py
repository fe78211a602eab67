"""The words that can be imported mean what they mean without an import."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe


def test_edges_and_casts_by_import(backend: str) -> None:
    names = {"pad": pe.pad, "wrap": pe.wrap, "clamp": pe.clamp, "small": pe.f32}
    f = pe.cd_from_source(
        "def f(y, x):\n"
        "    y[i] = small(x[pad(i - 1)] + x[wrap(i - 1)] + x[clamp(i - 1)]) + 0 * x[i]\n",
        names,
    )
    x, y = np.arange(1.0, 4.0), np.zeros(3)
    with pe.override(backend):
        f(y, x)
    assert y.tolist() == [0 + 3 + 1, 1 + 1 + 1, 2 + 2 + 2]


def test_a_comment_does_nothing_outside() -> None:
    with pe.comment("here"):
        ran = True
    assert ran


@pytest.mark.parametrize("name", ["i8", "u64", "f16", "bf16", "f32", "c128"])
def test_types_are_public_names(name: str) -> None:
    assert name in pe.__all__ and repr(getattr(pe, name)) == name


def test_there_is_no_second_bool() -> None:
    assert not hasattr(pe, "bool")
