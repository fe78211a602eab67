"""What `explain_memory` says of each field: its array, its owner, and the rule that decided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plusequals as pe

READ = pe.cd_from_source("def read(q, p):\n    q[i] = p[i]\n")
ADD = pe.cd_from_source("def add(p):\n    p[i] += 1.0\n")


def tensor(label: str = "p", **more: Any) -> Any:
    return pe.tensor(label, 2, dtype="float64", **more)


def stream_of(place: str = "numpy", name: str = "s") -> pe.Stream:
    stream = pe.device(place).stream(threaded=False)
    stream.name = f"{place}/{name}"
    return stream


def test_it_is_a_table() -> None:
    p, q, one = tensor(), tensor("q"), stream_of(name="one")
    reader = READ.compile(q, p).link(one.context())
    assert str(reader.explain_memory()) == (
        "`read` on numpy/one\n"
        "  q  writes  one of its own on numpy/one  owned by numpy/one\n"
        "      it was written when it first got an array on numpy:0\n"
        "  p  reads   the host's                   no owner\n"
        "      it was only read when it first got an array on numpy:0; that device uses host memory"
    )


def rows(routine: Any) -> dict[str, tuple[str, str, str | None]]:
    return {p.field: (p.use, p.array, p.owner) for p in routine.explain_memory().placements}


def test_who_owns_what_is_shared_shows_when_it_is_asked() -> None:
    p, q = tensor(), tensor("q")
    one, two = stream_of("numpy:1", "one"), stream_of("numpy:1", "two")
    reader = READ.compile(q, p).link(one.context())
    shared = "shared by the streams of numpy:1"
    assert rows(reader)["p"] == ("reads", shared, None)
    writer = ADD.compile(p).link(two.context())
    assert rows(writer)["p"] == ("reads and writes", shared, "numpy:1/two")
    assert rows(reader)["p"] == ("reads", shared, "numpy:1/two")


def test_arrays_of_parents_and_merge_buffers() -> None:
    p, one = tensor(), stream_of(name="one")
    step = pe.cd_from_source("def step(p):\n    p.grad[i] = 1.0\n").compile(p).link(one.context())
    code = pe.cd_from_source("def merge(p):\n    p.grad += p.grad.merge\n").compile(p)
    merge = code.link(step.context)
    found = {row.field: row for row in merge.explain_memory().placements}
    assert "that of the context it was linked into" in found["p.grad"].reason
    assert "it was linked into" not in step.explain_memory().placements[0].reason
    buffer = found["p.grad.merge"]
    assert (buffer.use, buffer.array) == ("reads", "merge buffer of numpy/one")


def test_a_device_that_uses_host_memory_has_a_copy_of_what_is_newer_elsewhere() -> None:
    p, q = tensor(), tensor("q")
    ADD.compile(p).link(stream_of("numpy:1").context())()
    reader = READ.compile(q, p).link(stream_of().context())
    row = reader.explain_memory().placements[1]
    assert row.array == "shared by the streams of numpy:0"
    assert row.reason.endswith("; the host's was out of date then")


@pytest.mark.parametrize("memory", ["on-device, per-stream", "on-device, shared-across-streams"])
def test_requests_are_named(memory: str) -> None:
    routine = ADD.compile(tensor(memory=memory)).link(stream_of("numpy:1").context())
    (row,) = routine.explain_memory().placements
    assert row.reason == f"it was asked to be {memory.replace('-', ' ')}"


def test_what_has_no_array() -> None:
    y, t = tensor("y"), tensor("t", memory="virtual")
    text = "def f(y, t):\n    t[i] = 1.0\n    y[i] = t[i]\n"
    routine = pe.cd_from_source(text).compile(y, t).link(stream_of().context())
    assert rows(routine)["t"] == ("writes", "no array", None)
    nothing = pe.cd_from_source("def g(x):\n    return x + 1\n").compile(np.ones(2))
    report = nothing.link(stream_of(name="one").context()).explain_memory()
    assert str(report) == "`g` on numpy/one uses no fields of tensors"


def test_nothing_is_said_of_a_context_that_has_ended() -> None:
    routine = ADD.compile(tensor()).link(stream_of().context())
    routine.context.finalize()
    with pytest.raises(pe.CdError, match="CD0845.*`add`"):
        routine.explain_memory()
