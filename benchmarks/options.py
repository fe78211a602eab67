"""What a run is asked for: the command line as a value."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plusequals.base.diagnostic import CdError
from plusequals.base.settings import PREFIX, from_environment

from .cell import Cell
from .cells import select
from .machine import available
from .peers import OURS, PEERS, Peer

PARTS = ("ceilings", "cells", "gradients", "calls", "imports", "firsts", "memory")
OUT = Path(__file__).parent / "out"


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that can be chosen."""

    cells: tuple[Cell, ...]
    threads: tuple[int, ...]
    peers: tuple[Peer, ...]
    parts: tuple[str, ...]
    rounds: int
    budget: float
    clock: str
    settings: dict[str, str]
    out: Path
    into: Path | None
    show: Path | None


def read(words: Sequence[str]) -> Options:
    """Return what the command line says. Ends the process with a sentence where it is not clear."""
    parser = _parser()
    said = parser.parse_args(words)
    try:
        return Options(
            cells=select(_listed(said.cells), _listed(said.sizes)),
            threads=_threads(_listed(said.threads)),
            peers=_peers(_listed(said.peers)),
            parts=_parts(_listed(said.parts)),
            rounds=said.rounds,
            budget=said.budget,
            clock=said.clock,
            settings=_settings(said.setting),
            out=said.out,
            into=said.into,
            show=said.show,
        )
    except ValueError as problem:
        parser.error(str(problem))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks",
        description="Measure plusequals beside other libraries, all in one run, turn by turn.",
    )
    add = parser.add_argument
    add("--cells", default="", metavar="A,B", help="workloads, kinds, or cells as gemm_f32:512")
    add("--sizes", default="", metavar="A,B", help="of small, medium, large; or a size's own name")
    add("--threads", default="", metavar="2,1", help="numbers of threads, one after another")
    add("--peers", default="", metavar="A,B", help="of " + ", ".join(p.name for p in PEERS))
    add("--parts", default="", metavar="A,B", help="of " + ", ".join(PARTS))
    add("--rounds", type=int, default=9, help="how many turns each peer has for a cell (9)")
    add("--budget", type=float, default=float("inf"), metavar="SECONDS",
        help="begin nothing new after so many seconds")  # fmt: skip
    add("--clock", choices=("wall", "processor"), default="wall",
        help="of cells and gradients: time that passes, or that processors work")  # fmt: skip
    add("--setting", action="append", default=[], metavar="NAME=VALUE", help="of plusequals")
    add("--out", type=Path, default=OUT, help="the folder for tables and pictures")
    add("--into", type=Path, metavar="PAGE", help="a page whose measured part is replaced")
    add("--show", type=Path, metavar="JSON", help="only write the tables of an earlier run")
    return parser


def _listed(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _threads(words: tuple[str, ...]) -> tuple[int, ...]:
    most = available()
    asked = tuple(int(word) for word in words) or (most, 1)
    for count in asked:
        if not 1 <= count <= most:
            raise ValueError(f"{count} threads: this process may run on 1 to {most} processors")
    return tuple(dict.fromkeys(asked))


def _peers(words: tuple[str, ...]) -> tuple[Peer, ...]:
    """Return the chosen peers in the order of the list; plusequals is always one of them."""
    names = [p.name for p in PEERS]
    for word in words:
        if word not in names:
            raise ValueError(f"there is no peer `{word}`; there are {', '.join(names)}")
    return tuple(p for p in PEERS if not words or p.name in words or p == OURS)


def _parts(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        if word not in PARTS:
            raise ValueError(f"there is no part `{word}`; there are {', '.join(PARTS)}")
    return words or PARTS


def _settings(pairs: Sequence[str]) -> dict[str, str]:
    """Return the settings by name, after plusequals has said that it knows them."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"`--setting {pair}` has no value; write name=value")
        found[name] = value
    try:
        from_environment({PREFIX + name.upper(): value for name, value in found.items()})
    except CdError as problem:
        raise ValueError(str(problem)) from None
    return found
