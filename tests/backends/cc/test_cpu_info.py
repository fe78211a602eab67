"""What this machine is: numbers that a schedule can live with, and a digest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from plusequals.backends.cc import cpu_info, toolchain
from plusequals.base import settings

CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 106
flags\t\t: fpu sse2 avx2 avx512f
bugs\t\t: many
cpu MHz\t\t: {}

processor\t: 1
cpu MHz\t\t: 1
"""
POWER = """processor\t: 0
cpu\t\t: POWER9, altivec supported
clock\t\t: 3783.000000MHz
revision\t: 2.2 (pvr 004e 1202)

processor\t: 1
cpu\t\t: POWER9, altivec supported
clock\t\t: 2166.000000MHz
revision\t: 2.2 (pvr 004e 1202)

timebase\t: 512000000
platform\t: PowerNV
model\t\t: 8335-GTH
MMU\t\t: Radix
"""
RISCV = """processor\t: 0
hart\t\t: 2
isa\t\t: rv64imafdc_zicntr_zihpm
mmu\t\t: sv39
uarch\t\t: sifive,u74-mc
mvendorid\t: 0x489

processor\t: 1
hart\t\t: 1
isa\t\t: rv64imafdc_zicntr_zihpm
mmu\t\t: sv39
uarch\t\t: sifive,u74-mc
mvendorid\t: 0x489
"""
ARM = """processor\t: 0
BogoMIPS\t: 50.00
Features\t: fp asimd evtstrm crc32 atomics
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1

processor\t: 1
BogoMIPS\t: 51.00
Features\t: fp asimd evtstrm crc32 atomics
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1
"""
SYSTEM_Z = """vendor_id       : IBM/S390
# processors    : 2
bogomips per cpu: 3033.00
max thread id   : 0
features\t: esan3 zarch stfle msa vx
processor 0: version = FF,  identification = 1A2B3C,  machine = 2964
processor 1: version = FF,  identification = 1A2B3C,  machine = 2964
"""
LOONGARCH = """system type\t: generic-loongson-machine
processor\t\t: 0
CPU Family\t\t: Loongson-64bit
Model Name\t\t: Loongson-3A5000
CPU MHz\t\t\t: 2500.00
BogoMIPS\t\t: 5000.00
ISA\t\t\t: loongarch32 loongarch64
Features\t\t: cpucfg lam fpu lsx lasx
"""


@pytest.fixture
def describe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that stands for the system's description."""
    path = tmp_path / "cpuinfo"
    monkeypatch.setattr(cpu_info, "_CPUINFO", path)
    monkeypatch.setattr(cpu_info, "_described", cpu_info._described.__wrapped__)
    return path


def test_numbers_are_plausible() -> None:
    found = cpu_info.target()
    assert found.name == "cc"
    assert found.vector_bits in (128, 256, 512)
    assert found.threads >= 1
    assert 4096 < found.l1_bytes < found.l2_bytes <= found.l3_bytes


def test_settings_limit_the_threads() -> None:
    with settings.override(threads=1):
        assert cpu_info.target().threads == 1
    with settings.override(threads=100_000):
        assert cpu_info.target().threads < 100_000


def test_instructions_decide_the_digest_and_the_clock_does_not(describe: Path) -> None:
    describe.write_text(CPUINFO.format(800))
    one = cpu_info.processor_digest()
    assert cpu_info.target().vector_bits == 512
    assert cpu_info.target().vector_registers == 32
    describe.write_text(CPUINFO.format(3000))
    assert cpu_info.processor_digest() == one
    describe.write_text(CPUINFO.format(800).replace("avx512f", ""))
    assert cpu_info.processor_digest() != one
    assert (cpu_info.target().vector_bits, cpu_info.target().vector_registers) == (256, 16)


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
    assert cpu_info.target().streams == expected


def test_facts_say_what_decides_schedules(describe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    describe.write_text(CPUINFO.format(800))
    before = cpu_info.target_inputs()
    describe.write_text(CPUINFO.format(3000))
    assert cpu_info.target_inputs() == before
    describe.write_text(CPUINFO.format(800).replace("avx512f", ""))
    assert cpu_info.target_inputs() != before
    describe.write_text(CPUINFO.format(800))
    for name in ("processors", "_cache_bytes"):
        with monkeypatch.context() as patch:
            patch.setattr(cpu_info, name, lambda *_: 7)
            assert cpu_info.target_inputs() != before
    assert cpu_info.target_inputs() == before


def test_a_system_that_does_not_say_is_modest(
    describe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_info, "_CACHES", describe)
    monkeypatch.setattr(cpu_info, "_cache_bytes", cpu_info._cache_bytes.__wrapped__)
    assert cpu_info.target().vector_bits == 128
    assert cpu_info.target().l1_bytes == 32 * 1024
    assert cpu_info.processor_digest() == ""


@pytest.mark.parametrize(
    ("text", "kind", "moment"),
    [
        (POWER, ("POWER9", "POWER8"), ("2166.000000", "3783.000000")),
        (POWER, ("pvr 004e 1202", "pvr 004d 0200"), ("timebase\t: 5", "timebase\t: 7")),
        (POWER, ("Radix", "Hash"), ("clock\t\t: 3783", "clock\t\t: 2166")),
        (RISCV, ("rv64imafdc", "rv64imafdcv"), ("hart\t\t: 2", "hart\t\t: 3")),
        (RISCV, ("u74-mc", "p550"), ("processor\t: 1", "processor\t: 2")),
        (RISCV, ("sv39", "sv48"), ("hart\t\t: 1", "hart\t\t: 7")),
        (ARM, ("crc32 atomics\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3",
               "crc32 sve\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3"),
         ("BogoMIPS\t: 50", "BogoMIPS\t: 48")),
        (ARM, ("0xd0c", "0xd40"), ("BogoMIPS\t: 51", "BogoMIPS\t: 49")),
        (ARM, ("0x41", "0x61"), ("processor\t: 1", "processor\t: 9")),
        (SYSTEM_Z, ("machine = 2964", "machine = 8561"), ("1A2B3C", "4D5E6F")),
        (SYSTEM_Z, ("msa vx", "msa"), ("3033.00", "3034.00")),
        (LOONGARCH, ("lsx lasx", "lsx"), ("2500.00", "1200.00")),
        (LOONGARCH, ("3A5000", "3A6000"), ("5000.00", "4800.00")),
        (CPUINFO, ("sse2 avx2", "sse2"), ("many", "few")),
    ],
)  # fmt: skip
def test_kinds_of_processors_of_all_architectures_differ(
    describe: Path, text: str, kind: tuple[str, str], moment: tuple[str, str]
) -> None:
    found = []
    for written in (text, text.replace(*moment), text.replace(*kind)):
        describe.write_text(written)
        found.append((cpu_info.processor_digest(), cpu_info._described()))
    assert text.replace(*moment) != text != text.replace(*kind)
    assert found[0] == found[1]
    assert found[0][0] != found[2][0] and found[0][1] != found[2][1]


def test_the_kinds_of_all_processors_of_a_machine_count(describe: Path) -> None:
    describe.write_text(ARM)
    one = cpu_info.processor_digest()
    describe.write_text(ARM[::-1].replace("c0dx0", "d0dx0", 1)[::-1])
    assert cpu_info.processor_digest() != one


def test_where_the_system_says_nothing_the_compiler_is_asked_each_time(describe: Path) -> None:
    assert cpu_info.processor_digest() == ""
    assert toolchain.fingerprint((sys.executable, "cc")) is None
    assert toolchain.fingerprint(("/usr/bin/gcc",)) is None
    assert cpu_info.target().vector_bits == 128


@pytest.mark.parametrize(
    ("said", "count"), [("2", 2), ("3, 2", 3), ("64", 8), ("0", 8), ("", 8), ("many", 8)]
)
def test_no_more_processors_are_used_than_openmp_may_use(
    monkeypatch: pytest.MonkeyPatch, said: str, count: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    monkeypatch.setattr(cpu_info.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(cpu_info, "_allowed", cpu_info._allowed.__wrapped__)
    assert cpu_info.processors() == count == cpu_info.target().threads
    with settings.override(threads=5):
        assert cpu_info.target().threads == 5
