"""Requests of memory against what the passes did: met, or refused with both places."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe
from plusequals.base.diagnostic import CdTypeError
from plusequals.lowering.ir.loops import Program
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.placement import Placement
from plusequals.lowering.target import HOST

CHEAP = "u[i] = x[i] * 2\n{}\ny[i] = u[i] + u[63 - i]"
COSTLY = "u[i] = exp(sin(x[i]))\n{}\nfor k in range(9):\n    y[i] += u[i] + u[63 - i]"
ROWS = "u[i] = sum(z[i, j])\n{}\ny[i] = u[i]"


def _optimized(body: str, request: str) -> tuple[Program, Placement]:
    text = "def f(y, x, z):\n    " + body.format(request).replace("\n", "\n    ") + "\n"
    arguments = np.zeros(64), np.zeros(64), np.zeros((64, 64))
    procedure = pe.cd_from_source(text, name="example.py").procedure(*arguments)
    return optimize(lower(procedure), HOST)


def _mode(body: str, mode: str) -> tuple[str, bool]:
    """The mode that `u` came to, and whether it has an array."""
    program, placement = _optimized(body, f'memory(u, "{mode}")')
    arrays = {node.label for node in program.locals if node.rank}
    (decision,) = placement.modes.values()
    return str(decision.mode), "u" in arrays


@pytest.mark.parametrize("mode", ["virtual", "effectively constant"])
@pytest.mark.parametrize("body", [CHEAP, COSTLY])
def test_what_is_to_be_virtual_is_whatever_it_costs(body: str, mode: str) -> None:
    assert _mode(body, mode) == ("virtual", False)


def test_a_scalar_of_each_round_is_no_array() -> None:
    assert _mode(ROWS, "virtual") == ("virtual", False)


@pytest.mark.parametrize("mode", ["local", "never virtual", "device only"])
@pytest.mark.parametrize("body", [CHEAP, COSTLY, ROWS])
def test_what_is_to_have_an_array_has_one(body: str, mode: str) -> None:
    assert _mode(body, mode) == ("local", True)


@pytest.mark.parametrize("mode", ["on-device", "materialized", "hosted", "hosted constant"])
def test_a_temporary_is_no_array_that_outlives_the_call(mode: str) -> None:
    with pytest.raises(CdTypeError, match="for as long as one call") as caught:
        _mode(CHEAP, mode)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "CD0572"
    assert [label.span.line for label in diagnostic.labels] == [3, 4]


def test_all_requests_that_cannot_be_met_are_told_at_once() -> None:
    both = 'memory(u, "hosted")\nmemory(x, "local")'
    with pytest.raises(CdTypeError) as caught:
        _optimized(CHEAP, both)
    assert [one.code for one in caught.value.diagnostics] == ["CD0572", "CD0572"]


def test_a_request_changes_no_bit_and_asking_changes_nothing() -> None:
    x = np.random.default_rng(3).random(64)
    results = []
    for request in ("", 'memory(u, "virtual")', 'memory(u, "local")'):
        text = "def f(y, x):\n    " + COSTLY.format(request).replace("\n", "\n    ") + "\n"
        function, y = pe.cd_from_source(text), np.zeros(64)
        function.explain(y, x)
        function(y, x)
        results.append(y.tobytes())
    assert len(set(results)) == 1
    program, placement = _optimized(CHEAP, "")
    assert placement.modes == {}
    assert [n.label for n in program.locals] == [n.label for n in _optimized(CHEAP, "")[0].locals]


@pytest.mark.parametrize("stop_after", ["", "lower", "virtualize"])
def test_where_the_pipeline_stops_is_nothing_to_a_refusal(stop_after: str) -> None:
    text = "def f(y, x):\n    t[i] = x[i] * 2\n    memory(t, 'on-device')\n    y[i] = t[i]\n"
    procedure = pe.cd_from_source(text).procedure(np.zeros(4), np.zeros(4))
    with pytest.raises(CdTypeError, match="CD0572"):
        optimize(lower(procedure), HOST, stop_after=stop_after)


@pytest.mark.parametrize("mode", ["hosted", "on-device", "materialized", "hosted constant"])
def test_a_temporary_that_nobody_uses_is_no_array_of_a_device_either(mode: str) -> None:
    text = f"def f(y, x):\n    t[i] = x[i] * 2\n    memory(t, {mode!r})\n    y[i] = x[i]\n"
    procedure = pe.cd_from_source(text).procedure(np.zeros(4), np.zeros(4))
    with pytest.raises(CdTypeError, match="for as long as one call"):
        optimize(lower(procedure), HOST)


@pytest.mark.parametrize("mode", ["virtual", "local", "never virtual", "device only"])
def test_what_else_is_asked_of_a_temporary_that_nobody_uses_excludes_nothing(mode: str) -> None:
    text = f"def f(y, x):\n    t[i] = x[i] * 2\n    memory(t, {mode!r})\n    y[i] = x[i]\n"
    procedure = pe.cd_from_source(text).procedure(np.zeros(4), np.zeros(4))
    assert optimize(lower(procedure), HOST)[1].modes


def test_requests_that_were_joined_are_shown_as_they_were_written() -> None:
    both = 'memory(u, "effectively constant")\nmemory(u, "never virtual")'
    with pytest.raises(CdTypeError) as caught:
        _optimized(CHEAP, both)
    (diagnostic,) = caught.value.diagnostics
    assert "`u` was to be effectively constant and never virtual, but is" in diagnostic.message
    shown = [(label.span.line, label.text) for label in diagnostic.labels[:2]]
    assert shown == [(3, "asks for effectively constant"), (4, "asks for never virtual")]
    assert "together they ask for hosted constant" in diagnostic.notes


@pytest.mark.parametrize("mode", ["virtual", "local"])
@pytest.mark.parametrize("name", ["x", "y"])
def test_arrays_of_the_caller_are_told_to_be_hosted(name: str, mode: str) -> None:
    with pytest.raises(CdTypeError, match="but is hosted: it is an array of the caller"):
        _optimized(CHEAP, f'memory({name}, "{mode}")')


def test_a_pipeline_that_is_stopped_settles_nothing() -> None:
    text = 'def f(y, x):\n    u[i] = x[i] * 2\n    memory(u, "virtual")\n    y[i] = u[i]\n'
    procedure = pe.cd_from_source(text).procedure(np.zeros(4), np.zeros(4))
    _, placement = optimize(lower(procedure), HOST, stop_after="lower")
    assert placement.modes == {}
