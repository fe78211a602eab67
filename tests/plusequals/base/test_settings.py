"""Settings: where a value comes from, which values are refused, and who sees an override."""

from __future__ import annotations

import os
import threading
from dataclasses import fields, replace

import pytest

from plusequals.base import settings
from plusequals.base.diagnostic import CdNameError, CdValueError
from plusequals.base.settings import Settings, current, from_environment, override, use

pytestmark = pytest.mark.usefixtures("as_new")


def test_sources_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLUSEQUALS_BACKEND", raising=False)
    settings.reset()
    assert current().backend == "cc"
    monkeypatch.setenv("PLUSEQUALS_BACKEND", "numpy")
    settings.reset()
    assert current().backend == "numpy"
    use("cc", debug=2)
    assert (current().backend, current().debug) == ("cc", 2)
    with override("numpy", verify=True):
        assert (current().backend, current().verify, current().debug) == ("numpy", True, 2)
        with override(verify=False):
            assert (current().backend, current().verify) == ("numpy", False)
            use(debug=3)
            assert (current().backend, current().debug) == ("numpy", 3)
        assert (current().verify, current().debug) == (True, 3)
    assert (current().backend, current().verify, current().debug) == ("cc", False, 3)


def test_override_ends_with_an_error() -> None:
    with pytest.raises(KeyError), override("numpy"):
        raise KeyError
    assert current().backend == Settings().backend


def test_override_is_of_its_thread_and_use_is_for_all() -> None:
    seen: list[tuple[str, int]] = []
    use(debug=4)
    with override("numpy"):
        thread = threading.Thread(target=lambda: seen.append((current().backend, current().debug)))
        thread.start()
        thread.join()
    assert seen == [("cc", 4)]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("BACKEND", "numpy", "numpy"),
        ("VERIFY", "on", True),
        ("CACHE", "0", False),
        ("DEBUG", "6", 6),
        ("COMPILER_TIMEOUT", "2.5", 2.5),
        ("PROFILE", "strict", "strict"),
        ("THREADS", "3", 3),
    ],
)
def test_environment_is_read_by_type(name: str, text: str, value: object) -> None:
    assert from_environment({"PLUSEQUALS_" + name: text, "PATH": "x"}) == {name.lower(): value}


def test_every_setting_can_come_from_the_environment() -> None:
    given = {"PLUSEQUALS_" + x.name.upper(): str(x.default) for x in fields(Settings)}
    assert from_environment(given) == {x.name: x.default for x in fields(Settings)}


def test_unknown_variable_names_the_nearest_and_all() -> None:
    with pytest.raises(CdNameError) as caught:
        from_environment({"PLUSEQUALS_BAKEND": "numpy"})
    assert caught.value.code == "CD0821"
    assert "did you mean `PLUSEQUALS_BACKEND`?" in str(caught.value)
    assert all("PLUSEQUALS_" + x.name.upper() in str(caught.value) for x in fields(Settings))


@pytest.mark.parametrize(
    ("name", "text"),
    [("DEBUG", "7"), ("VERIFY", "maybe"), ("THREADS", "-1"), ("COMPILER_TIMEOUT", "nan"),
     ("COMPILER_TIMEOUT", "soon"), ("PROFILE", "fast")],
)  # fmt: skip
def test_bad_variables_are_refused(name: str, text: str) -> None:
    with pytest.raises(CdValueError) as caught:
        from_environment({"PLUSEQUALS_" + name: text})
    assert caught.value.code == "CD0822"
    assert f"`PLUSEQUALS_{name}` cannot be '{text}'" in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [{"debug": 9}, {"debug": "1"}, {"verify": 1}, {"threads": -2}, {"threads": True},
     {"compiler_timeout": float("nan")}, {"cache_dir": 5}, {"profile": "fast"}, {"backend": 3}],
)  # fmt: skip
def test_bad_values_are_refused_and_change_nothing(changes: dict[str, object]) -> None:
    before = current()
    with pytest.raises(CdValueError, match="CD0822"):
        use(**changes)  # type: ignore[arg-type]
    with pytest.raises(CdValueError, match="CD0822"), override(**changes):  # type: ignore[arg-type]
        pytest.fail("entered")
    assert current() == before


def test_a_text_in_place_of_a_number_is_told_from_it() -> None:
    with pytest.raises(CdValueError, match="cannot be '2': it takes 0 or 1 or 2 or 3 or 'g'"):
        use(optimize="2")  # type: ignore[arg-type]  # what a string gives


def test_unknown_setting_is_refused_with_the_nearest() -> None:
    with pytest.raises(CdNameError, match="did you mean `verify`?"):
        use(verfy=True)


def test_descriptions_cover_every_setting() -> None:
    rows = settings.describe()
    assert [row[0] for row in rows] == [x.name for x in fields(Settings)]
    assert all(len(text) > 10 for _, _, text in rows)


def test_equal_settings_are_one_object() -> None:
    before = current()
    with override(debug=5) as first:
        assert current() is first
        with override(debug=5, verify=True) as inner:
            assert inner is not first
        with override(debug=5) as same:
            assert same is first
    with override(debug=5) as again:
        assert again is first
    assert current() is before
    use(debug=5)
    assert current() is first
    settings.reset()
    assert current() is before


def test_changes_of_the_process_inside_a_with_are_seen_by_identity() -> None:
    with override(verify=True) as outer:
        with override(debug=1):
            use(tf32=True)
            merged = current()
            assert current() is merged
            assert (merged.verify, merged.debug, merged.tf32) == (True, 1, True)
        assert current() == replace(outer, tf32=True)
        assert current() is current()
    assert current() == replace(Settings(), tf32=True, **from_environment(os.environ))


def test_threads_with_equal_settings_share_them() -> None:
    seen: dict[int, set[int]] = {number: set() for number in range(4)}

    def run(seed: int) -> None:
        for turn in range(200):
            number = (seed + turn) % 4
            with override(threads=number) as now:
                assert (current() is now, now.threads) == (True, number)
                seen[number].add(id(now))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(ids) for ids in seen.values()] == [1, 1, 1, 1]


def test_the_table_of_settings_is_bounded() -> None:
    with override(cache_size=1) as first:
        for number in range(2 * settings._MAX_INTERNED):
            with override(threads=number):
                pass
        assert len(settings._interned) <= settings._MAX_INTERNED
        assert current() is first
        with override(threads=first.threads) as equal:
            assert equal == first
