"""What is told while working: the stages of a function as files, and lines on the error stream.

The setting `dump_dir` names a folder that receives every stage; `debug` is a ladder:

    1  one line per function: backend, where its code came from, how long that took
    2  and one per pass: how many statements there are after it
    4  and the final loops and the generated source
    5  and the loops after every pass
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ..lowering import settings
from ..lowering.ir.loops import Program
from ..lowering.ir.printer import print_program
from ..lowering.pipeline import Observer


def tell(level: int, text: str) -> None:
    """Print text on the error stream where the setting `debug` is at least that level."""
    if settings.current().debug >= level:
        print(text, file=sys.stderr, flush=True)


def observer(name: str) -> Observer | None:
    """Return what shows the stages of a function as the settings ask, None where they do not."""
    chosen = settings.current()
    if not chosen.dump_dir and chosen.debug < 2:
        return None
    numbers = iter(range(1000))

    def observe(stage: str, program: Program) -> None:
        text = print_program(program)
        number = next(numbers)
        save(name, f"{number:02d}-{stage}.txt", text)
        tell(2, f"plusequals: {name}: {stage}: {len(text.splitlines())} lines of loops")
        tell(5, text)

    return observe


def save(name: str, ending: str, text: str) -> None:
    """Write one stage of a function into the setting's folder, if it names one.

    Raises OSError where the folder cannot be written: who asked for files wants to know.
    """
    chosen = settings.current().dump_dir
    if chosen:
        folder = Path(chosen).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{_safe(name)}-{ending}").write_text(text, encoding="utf-8")


def _safe(name: str) -> str:
    """Return a user's name as part of a file name: letters, digits and `_` only."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", name)[:80] or "function"
