"""A recording: a folder with one compressed file for each batch of programs."""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT = 1
_ABOUT = "about.json"


class Unreadable(Exception):
    """There is no recording in a folder; says why."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The files of a recording."""

    folder: Path

    def begin(self, commit: str, asked: str) -> None:
        """Make the folder, or go on with what is asked for; raises Unreadable for anything else."""
        path, about = self.folder / _ABOUT, {"format": FORMAT, "commit": commit, "asked": asked}
        self.folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(json.dumps(about) + "\n", "utf-8")
        elif commit.endswith("+") or self.about() != about:
            raise Unreadable(
                f"{self.folder} has a recording of {self.about()['commit']}: only one of the same "
                "commit, without changes, can be gone on with"
            )

    def about(self) -> dict[str, Any]:
        """Return of which commit it is; raises Unreadable."""
        try:
            found: dict[str, Any] = json.loads((self.folder / _ABOUT).read_text("utf-8"))
        except OSError as why:
            raise Unreadable(f"there is no recording in {self.folder}: {why.strerror}") from None
        if found["format"] != FORMAT:
            raise Unreadable(f"{self.folder} has a recording of another format")
        return found

    def path(self, number: int) -> Path:
        """Return the file of a batch."""
        return self.folder / f"batch-{number:04}.json.xz"

    def batches(self) -> Iterator[dict[str, Any]]:
        """Yield every batch: its programs, and texts by digest."""
        self.about()
        for path in sorted(self.folder.glob("batch-*.json.xz")):
            yield json.loads(lzma.decompress(path.read_bytes()))


def write(path: Path, batch: dict[str, Any]) -> None:
    """Write a batch; the file is there whole, or not at all."""
    packed = lzma.compress(json.dumps(batch).encode(), preset=1)
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_bytes(packed)
    beside.replace(path)
