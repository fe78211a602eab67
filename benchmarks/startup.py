"""What is paid once: importing, the first call of a process, memory; and what each call costs."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from .cells import cell
from .environments import NotInstalled, environment, variables
from .measure import Crew, Say, measure, take_turns, write
from .peers import OURS, Peer
from .process import Died, LeftOut, Process
from .results import Report

SMALLEST = "saxpy:small"
"""Three small arrays and a number."""
FIRSTS = ("saxpy:medium", "softmax:medium", "mlp_step:medium")
TIMER = "import time; s = time.perf_counter(); import {}; print(time.perf_counter() - s)"
CACHES = ("NUMBA_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR",
          "PLUSEQUALS_CACHE_DIR")  # fmt: skip
Settings = Mapping[str, str]


def calls(report: Report, crew: Crew, rounds: int, folder: Path, say: Say) -> None:
    """Add seconds of a warm call to the report: with the same arrays, with fresh ones."""
    same, why = measure(crew, cell(SMALLEST), rounds, folder, say)
    fresh = take_turns(crew, [name for name in same if name not in why], rounds, why, "fresh")
    for name, timing in same.items():
        report.calls[name] = {"same": timing.seconds}
        if name in fresh:
            report.calls[name]["fresh"] = median(fresh[name])
    report.problems += [f"warm calls: {name}: {reason}" for name, reason in why.items()]


def imports(report: Report, peers: tuple[Peer, ...], rounds: int, say: Say) -> None:
    """Add seconds of importing each library to the report, each in a new process."""
    samples: dict[str, list[float]] = {}
    for _ in range(rounds):
        for peer in peers:
            say(f"import {peer.module}")
            try:
                found = environment(peer, say)
            except NotInstalled as why:
                report.left_out[peer.name] = str(why)
                continue
            done = subprocess.run(
                [str(found.python), "-c", TIMER.format(peer.module)], env=variables(1, found, {}),
                capture_output=True, text=True, check=False, timeout=600,
            )  # fmt: skip
            if done.returncode == 0:
                samples.setdefault(peer.module, []).append(float(done.stdout.split()[-1]))
    report.imports = {module: median(taken) for module, taken in samples.items()}


def firsts(
    report: Report, peers: tuple[Peer, ...], names: tuple[str, ...], settings: Settings,
    folder: Path, say: Say,
) -> None:  # fmt: skip
    """Add seconds of the first call of a process to the report, empty and warm cache."""
    for name in names:
        write(cell(name).workload.case(cell(name).size), folder)
        for peer in peers:
            if peer.name in report.left_out:
                continue
            say(f"{name}: {peer.name}, first call of a process")
            if peer == OURS:  # of a checkout there is no bytecode yet, as there is of a package
                with tempfile.TemporaryDirectory() as cache:
                    for _ in range(2):
                        _first(peer, name, settings, folder, Path(cache), say)
            with tempfile.TemporaryDirectory() as cache:
                taken = [_first(peer, name, settings, folder, Path(cache), say) for _ in range(2)]
            empty, warm = taken
            if isinstance(empty, str) or isinstance(warm, str):
                report.problems.append(f"first call of {name}: {peer.name}: {empty}")
            else:
                report.firsts.setdefault(name, {})[peer.name] = (empty, warm)


def _first(
    peer: Peer, name: str, settings: Settings, folder: Path, cache: Path, say: Say
) -> float | str:
    """Return the seconds of a new process's first call with this cache, or why there are none."""
    try:
        with _process(peer, settings, folder / "first.log", cache, say) as process:
            return float(process.ask("prepare", cell=name, folder=str(folder))["first"])
    except (NotInstalled, Died, LeftOut) as why:
        return str(why)


def memory(
    report: Report, peers: tuple[Peer, ...], name: str, settings: Settings, folder: Path, say: Say
) -> None:
    """Add the peak of a cell beyond arguments and results to the report.

    It is that of a new process which finds on disk what an earlier one compiled.
    """
    write(cell(name).workload.case(cell(name).size), folder)
    for peer in peers:
        if peer.name in report.left_out:
            continue
        say(f"{name}: {peer.name}, memory")
        try:
            with tempfile.TemporaryDirectory() as cache:
                for _ in range(2):
                    peak = _peak(peer, name, settings, folder, Path(cache), say)
        except (NotInstalled, Died, LeftOut) as why:
            report.problems.append(f"memory of {name}: {peer.name}: {why}")
        else:
            report.memory.setdefault(name, {})[peer.name] = peak


def _peak(peer: Peer, name: str, settings: Settings, folder: Path, cache: Path, say: Say) -> int:
    """Return the bytes at the peak of a new process with this cache."""
    with _process(peer, settings, folder / "memory.log", cache, say) as process:
        process.ask("prepare", cell=name, folder=str(folder))
        return int(process.ask("memory")["bytes"])


def _process(peer: Peer, settings: Settings, log: Path, cache: Path, say: Say) -> Process:
    """Return a new process of a peer that keeps on disk, in this cache, what it compiles."""
    found = environment(peer, say)
    around = variables(1, found, settings if peer == OURS else {})
    around |= {variable: str(cache / variable) for variable in CACHES}
    return Process(found.python, peer.name, 1, around, log, kept=True)
