"""Batches: one text compiled once, one map of arrays, every routine under its own name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe
from plusequals import cd
from plusequals.backends.runtime.state import RUNTIME
from plusequals.idx import i

from ..codegen.harness import needs_compiler


@cd
def show(total, p):
    total[0] = sum(p[i])


@cd
def grow(p):
    p[i] += 1.0


def tensors() -> tuple[pe.Tensor, pe.Tensor]:
    return pe.tensor("p", 3, dtype="float64"), pe.tensor("total", 1, dtype="float64")


def test_trap_the_routines_of_a_batch_share_their_arrays_and_keep_their_names(backend: str) -> None:
    p, total = tensors()
    batch = pe.Batch(show.compile(total, p), grow.compile(p))
    one, two = batch.link(pe.device(backend).stream().context())
    assert (one.name, two.name) == ("show", "grow") and one.context is two.context
    assert one.context.find(p.value) is not p.value.host, "it is written by another of them"
    for _ in range(3):
        two()
    one()
    assert total.numpy().tolist() == [9.0] and p.numpy().tolist() == [3.0] * 3


@needs_compiler
def test_a_batch_is_compiled_as_one_text() -> None:
    number = np.random.default_rng().integers(1 << 40)  # compiled nowhere before
    texts = [f"def f(p):\n    p[i] = p[i] + {number} + {k}\n" for k in range(3)]
    p, _ = tensors()
    codes = [pe.cd_from_source(text).compile(p) for text in texts]
    before = RUNTIME.counts().get("compiled", 0)
    routines = pe.Batch(*codes, codes[0]).link(pe.device("cc").stream().context())
    assert [routine.name for routine in routines] == ["f"] * 4
    made = [code.codes.on("cc") for code in codes]
    assert len({code.text for code in made}) == 1 and RUNTIME.counts()["compiled"] == before + 3
    text = made[0].text
    assert [text.count(f"int {name}(void **") for name in ("pe_f", "pe_f_2", "pe_f_3")] == [1, 1, 1]
    for k, code in enumerate(made):
        lines = text.splitlines()
        told = [lines[at - 1] for at, span in code.line_map.items() if span.line == 2]
        assert told and any(f"{number}" in line for line in told), k
    for routine in routines:
        routine()
    assert p.numpy()[0] == 4.0 * number + 3.0


def test_what_cannot_be_linked_leaves_nothing_behind() -> None:
    p, total = tensors()
    fixed = pe.tensor("fixed", 3, dtype="float64", constant=True)
    context = pe.device("numpy").stream().context()
    stream: Any = context.stream
    with pytest.raises(TypeError, match="CD0804"):
        pe.Batch(grow.compile(p), grow.compile(fixed)).link(context)
    assert context.find(p.value) is None
    with pytest.raises(TypeError, match="CD0847"):
        pe.Batch(show.compile(total, p)).link(stream)


def test_a_batch_of_what_is_compiled_notes_no_compilation() -> None:
    p, _ = tensors()
    code = grow.compile(p)
    batch = pe.Batch(code)
    batch.link(pe.device("numpy").stream().context())
    with pe.profile() as timeline:
        batch.link(pe.device("numpy").stream().context())
    assert {work.kind for work in timeline.works} <= {"copy"}
