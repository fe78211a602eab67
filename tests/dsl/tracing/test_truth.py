"""A trace is what the interpreter does, assignment by assignment: for all that the language shows.

The worked examples, the examples of every rule of the language page, and those with tensors, their
fields and merge buffers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plusequals as pe
from tests import page
from tests.language import index_functions
from tests.language.examples import EXAMPLES, Example

from .functions import CALLS
from .watched import assert_same_records, watched

PAGE = Path(__file__).resolve().parents[3] / "docs" / "language.md"


def records(trace: pe.Trace) -> list[tuple[Any, ...]]:
    """Return what was assigned, but not what calls of the library come to."""
    return [(r.array, r.index, r.before, r.after) for r in trace if r.site.reads is None]


@pytest.mark.parametrize("name", CALLS)
def test_each_way_to_write_an_array(name: str, backend: str) -> None:
    function, make = CALLS[name]
    with watched() as watch:
        function.on("numpy")(*make())
    with pe.override(profile="strict"), pe.trace() as trace:
        function.on(backend)(*make())
    assert_same_records(records(trace), watch.seen(trace))


@pytest.mark.parametrize("example", EXAMPLES, ids=repr)
def test_worked_examples(example: Example, backend: str) -> None:
    function = getattr(index_functions, example.function)
    with watched() as watch:
        function.on("numpy")(*example.make())
    with pe.override(profile="strict"), pe.trace() as trace:
        function.on(backend)(*example.make())
    assert_same_records(records(trace), watch.seen(trace), example.rtol)


@pytest.mark.parametrize("example", page.examples(PAGE.read_text(encoding="utf-8")), ids=repr)
def test_examples_of_the_language_page(example: page.Example, backend: str) -> None:
    in_order = example.code.replace('"cc"', '"numpy"').replace(".stream()", ".stream(False)")
    with pe.override(backend="numpy"), watched() as watch:
        page.run(replace(example, code=in_order))
    with pe.override(backend=backend, profile="strict"), pe.trace() as trace:
        page.run(replace(example, code=example.code.replace('"cc"', f'"{backend}"')))
    assert_same_records(records(trace), watch.seen(trace), 1e-6)


def train(backend: str) -> None:
    """Run the worked examples that need tensors: a step on each of two streams, then a merge."""
    device = pe.device(backend)
    p = pe.tensor("p", (2, 3), dtype="float64", init=0.5, fields=("vel",))
    grads = [np.arange(6.0).reshape(2, 3) * n for n in (1, 2)]
    contexts = []
    for grad in grads:
        stream = device.stream()
        fill = index_functions.set_grad.compile(p, grad).link(stream.context())
        fill(grad)
        contexts.append(fill.context)
        stream.synchronize()
    merge = index_functions.merge_grad.compile(p).link(contexts[0])
    contexts[1].merge_into(merge, p.grad)
    merge()
    step = index_functions.sgd.compile(p, 0.1, 0.9, 0.01).link(contexts[0])
    step(lr=0.1, momentum=0.9, decay=0.01)
    assert step.context.numpy(p).tolist() == (0.5 - 0.1 * (3 * grads[0] + 0.005)).tolist()


def test_worked_examples_with_tensors(backend: str) -> None:
    with watched() as watch:
        train("numpy")
    with pe.trace() as trace:
        train(backend)
    assert_same_records(records(trace), watch.seen(trace))
    assert [run.name for run in trace.runs] == [
        "set_grad",
        "set_grad",
        "merge_grad",
        "sgd_sgd_update",
    ]
    merged = trace.where(array="p.grad")[-6:]
    assert [r.after for r in merged] == [0.0, 3.0, 6.0, 9.0, 12.0, 15.0]
