"""Tensors with requests: those without an array, and where the request stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals.backends.runtime.tensor import is_transient, memory_request
from plusequals.base.diagnostic import CdError

SCALED = "def f(y, x):\n    t[i] = x[i] * 2\n    y[i] = t[i] + t[3 - i]\n"


def _function(t: pe.Tensor, text: str = SCALED, backend: str = "numpy") -> pe.CdFunction:
    return pe.cd_from_source(text, {"t": t}, backend=backend)


@pytest.mark.parametrize("runs_on", ["numpy", "cc"])
@pytest.mark.parametrize("memory", ["virtual", "local", "on-device", "hosted", None])
def test_a_request_changes_no_result(memory: str | None, runs_on: str) -> None:
    t, y = pe.tensor("t", (4,), "float64", memory=memory), np.zeros(4)
    _function(t, backend=runs_on)(y, np.arange(4.0))
    assert y.tolist() == [6, 6, 6, 6]


def test_what_has_no_array_is_zeros_at_each_call() -> None:
    t, y = pe.tensor("t", (4,), "float64", memory="local"), np.zeros(4)
    function = _function(t, "def f(y, x):\n    t[i] += x[i]\n    y[i] = t[i]\n")
    for _ in range(2):
        function(y, np.ones(4))
        assert y.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t.numpy(), np.asarray, lambda t: t[0], lambda t: t.__setitem__(0, 1.0),
        lambda t: t.edit(), lambda t: t.grad,
    ],
)  # fmt: skip
def test_the_host_sees_nothing_of_it(use: Callable[[Any], object]) -> None:
    with pytest.raises(CdError) as caught:
        use(pe.tensor("t", (4,), memory="virtual"))
    assert caught.value.code == "CD0575"
    (label,) = caught.value.diagnostics[0].labels
    assert 'memory="virtual"' in label.span.text, "the line that asked"


def test_what_excludes_the_mode_is_refused_at_once() -> None:
    refused: dict[str, dict[str, Any]] = {
        "CD0571": {"memory": "local", "constant": True},
        "CD0575": {"memory": "virtual", "init": 1.0},
        "CD0573": {"memory": "hostd"},
    }
    for code, options in refused.items():
        with pytest.raises(CdError) as caught:
            pe.tensor("t", (4,), **options)
        assert caught.value.code == code


def test_requests_are_part_of_what_code_is_made_for() -> None:
    function = pe.cd_from_source("def f(y, t):\n    t[i] = 1\n    y[i] = t[i]\n", backend="numpy")
    function(np.zeros(4), pe.tensor("t", (4,)))
    with pytest.raises(CdError, match="hosted volatile"):
        function(np.zeros(4), pe.tensor("t", (4,), memory="hosted-volatile"))


def test_no_request_is_none() -> None:
    assert memory_request("t", None, False, True) is None
    assert not is_transient(None)
    assert pe.tensor("t", (4,)).memory == ""


def test_requests_of_a_tensor_and_of_a_function_meet_or_are_refused() -> None:
    text = "def f(y, t):\n    memory(t.value, {!r})\n    t[i] += 1\n    y[i] = t[i]\n"
    refused = {
        "local": ("virtual", "on-device", "hosted"),
        "virtual": ("never virtual", "local"),
        "hosted": ("virtual", "local", "on-device"),
        "never virtual": ("virtual", "local"),
    }
    modes = dict.fromkeys((*refused, "on-device"))
    for first in refused:
        for second in modes:
            t, y = pe.tensor("t", (2,), "float64", memory=first), np.zeros(2)
            function = pe.cd_from_source(text.format(second), backend="numpy")
            if second in refused[first] or (first, second) == ("virtual", "virtual"):
                with pytest.raises(CdError, match="CD057[12]"):
                    function(y, t)
                continue
            if first == "virtual":
                continue
            function(y, t)
            function(y, t)
            assert y.tolist() == [1.0 if first == "local" else 2.0] * 2, (first, second)
