"""Which versions a routine read, and whether they are still there."""

from __future__ import annotations

import pytest

import plusequals as pe
from plusequals.backends.runtime.memory import Buffer
from plusequals.backends.runtime.read_versions import ReadVersions, VersionCheck
from plusequals.base.diagnostic import NOWHERE
from tests.backends.runtime.test_device import tensor


def scene() -> tuple[pe.Field, Buffer, ReadVersions, VersionCheck]:
    field = tensor("a").field()
    buffer = Buffer("a", field.host.array.copy(), None)
    ran = ReadVersions(
        "first", ((tensor("b").field(), Buffer("b", field.host.array, None)), (field, buffer))
    )
    return field, buffer, ran, VersionCheck("`t`", ran, (field,))


def test_nothing_is_what_it_was_before_it_was() -> None:
    field, _, ran, again = scene()
    with pytest.raises(ValueError, match="CD0850.*`t`"):
        again.require("second", NOWHERE)
    ran.note()
    again.require("second", NOWHERE)
    assert ran.ticks == (0, 0) and field.clock == 0


def test_only_what_it_is_computed_of_counts() -> None:
    field, buffer, ran, again = scene()
    ran.note()
    ran.reads[0][1].tick = 7
    again.require("second", NOWHERE)
    field.record_write(buffer)
    with pytest.raises(ValueError, match="CD0859.*version of `a`"):
        again.require("second", NOWHERE)
    ran.note()
    again.require("second", NOWHERE)


def test_what_would_be_loaded_counts() -> None:
    field, _, ran, again = scene()
    ran.note()
    field.record_host_write()
    with pytest.raises(ValueError, match="CD0859"):
        again.require("second", NOWHERE)
    with pe.override(automatic_host_transfers=False):
        again.require("second", NOWHERE)
