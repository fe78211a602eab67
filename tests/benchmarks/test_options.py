"""The command line as a value, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import options
from benchmarks.machine import available
from benchmarks.peers import PEERS


def test_without_options_it_is_everything() -> None:
    asked = options.read([])
    assert asked.peers == PEERS
    assert asked.parts == options.PARTS
    assert asked.threads == tuple(dict.fromkeys((available(), 1)))
    assert len(asked.cells) > 100 and asked.settings == {} and asked.budget == float("inf")


def test_what_is_chosen() -> None:
    asked = options.read([
        "--cells", "saxpy,gemm_f32:512", "--sizes", "small,512", "--threads", "1", "--peers",
        "jax", "--rounds", "3", "--budget", "60", "--parts", "cells", "--setting",
        "profile=strict", "--out", "here", "--clock", "processor",
    ])  # fmt: skip
    assert [cell.name for cell in asked.cells] == ["saxpy:small", "gemm_f32:512"]
    assert [peer.name for peer in asked.peers] == ["plusequals", "jax"]
    assert (asked.threads, asked.rounds, asked.budget) == ((1,), 3, 60.0)
    assert asked.settings == {"profile": "strict"} and asked.parts == ("cells",)
    assert asked.out == Path("here") and asked.clock == "processor"


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--cells", "saxpi"], "there is no workload `saxpi`"),
        (["--peers", "torchy"], "there is no peer `torchy`; there are plusequals, numpy"),
        (["--parts", "cell"], "there is no part `cell`"),
        (["--threads", "0"], "0 threads: this process may run on 1 to"),
        (["--threads", "100000"], "100000 threads"),
        (["--setting", "profile"], "`--setting profile` has no value"),
        (["--setting", "profil=strict"], "there is no setting `PLUSEQUALS_PROFIL`"),
        (["--setting", "profile=quick"], "it takes 'default' or 'strict'"),
    ],
)
def test_what_is_refused(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        options.read(words)
    assert end.value.code == 2
    assert sentence in capsys.readouterr().err
