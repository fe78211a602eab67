"""What this machine is: numbers that a schedule can live with, and a digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from plusequals.backends.cc import host
from plusequals.lowering import settings

CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 106
flags\t\t: fpu sse2 avx2 avx512f
bugs\t\t: many
cpu MHz\t\t: {}

processor\t: 1
flags\t\t: none
"""


@pytest.fixture
def describe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that stands for the system's description."""
    path = tmp_path / "cpuinfo"
    monkeypatch.setattr(host, "_CPUINFO", path)
    monkeypatch.setattr(host, "_described", host._described.__wrapped__)
    return path


def test_numbers_are_plausible() -> None:
    found = host.target()
    assert found.name == "cc"
    assert found.vector_bits in (128, 256, 512)
    assert found.threads >= 1
    assert 4096 < found.l1_bytes < found.l2_bytes <= found.l3_bytes


def test_settings_limit_the_threads() -> None:
    with settings.override(threads=1):
        assert host.target().threads == 1
    with settings.override(threads=100_000):
        assert host.target().threads < 100_000


def test_instructions_decide_the_digest_and_the_clock_does_not(describe: Path) -> None:
    describe.write_text(CPUINFO.format(800))
    one = host.processor()
    assert host.target().vector_bits == 512
    assert host.target().vector_registers == 32
    describe.write_text(CPUINFO.format(3000))
    assert host.processor() == one
    describe.write_text(CPUINFO.format(800).replace("avx512f", ""))
    assert host.processor() != one
    assert (host.target().vector_bits, host.target().vector_registers) == (256, 16)


@pytest.mark.parametrize(
    ("maker", "family", "model", "expected"),
    [("GenuineIntel", 6, 106, 4), ("AuthenticAMD", 23, 1, 4), ("AuthenticAMD", 25, 1, 4),
     ("AuthenticAMD", 25, 80, 4), ("AuthenticAMD", 25, 17, 1), ("AuthenticAMD", 25, 97, 1),
     ("AuthenticAMD", 26, 2, 1), ("", 23, 1, 1)],
)  # fmt: skip
def test_the_processor_decides_at_how_many_places_memory_is_read(
    describe: Path, maker: str, family: int, model: int, expected: int
) -> None:
    text = CPUINFO.replace("GenuineIntel", maker).replace("family\t: 6", f"family\t: {family}")
    text = text.replace("model\t\t: 106", f"model\t\t: {model}")
    describe.write_text(text.format(800))
    assert host.target().streams == expected


def test_facts_say_what_decides_schedules(describe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    describe.write_text(CPUINFO.format(800))
    before = host.facts()
    describe.write_text(CPUINFO.format(3000))
    assert host.facts() == before
    describe.write_text(CPUINFO.format(800).replace("avx512f", ""))
    assert host.facts() != before
    describe.write_text(CPUINFO.format(800))
    for name in ("processors", "_cache_bytes"):
        with monkeypatch.context() as patch:
            patch.setattr(host, name, lambda *_: 7)
            assert host.facts() != before
    assert host.facts() == before


def test_a_system_that_does_not_say_is_modest(
    describe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_CACHES", describe)
    monkeypatch.setattr(host, "_cache_bytes", host._cache_bytes.__wrapped__)
    assert host.target().vector_bits == 128
    assert host.target().l1_bytes == 32 * 1024
    assert len(host.processor()) == 64
