"""Tokens that go behind all finalizers, in circles and outside of them."""

from __future__ import annotations

import gc
import subprocess
import sys

from plusequals.base.finalizers import call_when_unreachable


class Circle:
    """What refers to itself, and has a finalizer."""

    def __init__(self, said: list[str], kept: list[Circle] | None = None) -> None:
        self.token, self.itself = call_when_unreachable(said.append, "gone"), self
        self.said, self.kept = said, kept

    def __del__(self) -> None:
        self.said.append("finalized")
        if self.kept is not None:
            self.kept.append(self)


def test_a_token_goes_with_the_last_reference() -> None:
    said: list[str] = []
    token = call_when_unreachable(said.append, "gone")
    other = token
    del token
    assert not said
    del other
    assert said == ["gone"]


def test_the_collector_does_not_know_it() -> None:
    assert not gc.is_tracked(call_when_unreachable(print))


def test_finalizers_of_a_circle_come_first() -> None:
    said: list[str] = []
    Circle(said)
    gc.collect()
    assert said == ["finalized", "gone"]


def test_what_a_finalizer_keeps_is_not_gone() -> None:
    said: list[str] = []
    kept: list[Circle] = []
    Circle(said, kept)
    gc.collect()
    assert said == ["finalized"]
    kept.clear()
    gc.collect()
    assert said == ["finalized", "gone"]


def test_nothing_is_done_when_the_process_ends() -> None:
    text = (
        "from plusequals.base.finalizers import call_when_unreachable\n"
        "held = call_when_unreachable(print, 'gone')\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
