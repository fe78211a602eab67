"""Every broken program is refused with a message that has all of its parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from plusequals.base.diagnostic import CdError, CdInternalError
from tests.errors import cases_run, page
from tests.errors.case import grades, is_python, offered
from tests.errors.outside import OUTSIDE

CASES = page.all_cases()
Golden = Callable[[str], Callable[[str], None]]
NO_PYTHON = ("pip install", "apt install", "dnf install", "brew install", "xcode-select", "def ")


def code_of(message: str) -> str:
    found = re.match(r"error\[(CD\d{4})\]", message)
    return found[1] if found else ""


@pytest.mark.parametrize("name", CASES)
def test_message(golden: Golden, name: str) -> None:
    message = str(CASES[name].error())
    assert code_of(message), "every message has a code"
    golden(f"{name}.err")(message)


@pytest.mark.parametrize("name", CASES)
def test_message_has_all_its_parts(name: str) -> None:
    message = str(CASES[name].error())
    missing = [part for part, good in grades(CASES[name], message).items() if not good]
    assert not missing, f"{missing} of\n{message}"


@pytest.mark.parametrize("name", CASES)
def test_what_is_offered_is_python(name: str) -> None:
    texts = [t for t in offered(str(CASES[name].error())) if not t.startswith(NO_PYTHON)]
    assert [text for text in texts if not is_python(text)] == []


@pytest.mark.parametrize("name", cases_run.CASES)
def test_run_time_errors_are_those_of_compiled_code(name: str) -> None:
    assert str(CASES[name].error("cc")) == str(CASES[name].error("numpy"))


def test_an_error_leaves_its_arguments_as_they_were() -> None:
    for name in ("gather_out_of_range", "static_index_out_of_range"):
        case = CASES[name]
        names = case.namespace()
        given = eval(f"({case.arguments},)", names)
        before = [value.copy() if hasattr(value, "copy") else value for value in given]
        with pytest.raises(CdError):
            case.function("numpy")(*given)
        assert all((a == b).all() for a, b in zip(before, given, strict=True) if hasattr(a, "all"))


def test_no_two_cases_have_one_name() -> None:
    assert len(CASES) == sum(len(file.CASES) for file in page.FILES)


def test_there_are_enough_pairs_of_a_rule_and_a_construct(golden_folder: Path) -> None:
    parser = {path.stem for path in (golden_folder.parent / "dsl" / "test_refused").glob("*.err")}
    pairs = {(code_of((golden_folder / f"{name}.err").read_text("utf-8")), name) for name in CASES}
    assert len(pairs) + len(parser) >= 200
    assert len({code for code, _ in pairs}) >= 80


def test_no_golden_file_without_a_case(golden_folder: Path) -> None:
    assert {path.stem for path in golden_folder.glob("*.err")} == set(CASES)


def test_the_message_is_what_a_traceback_ends_with() -> None:
    case = next(iter(CASES.values()))
    frames = []
    trace = case.error().__traceback__
    while trace is not None:
        frames.append(Path(trace.tb_frame.f_code.co_filename).name)
        trace = trace.tb_next
    assert frames == ["case.py", "case.py", "cd.py"]


# ---------------------------------------------------------------- without a place in a function


def outside_error(name: str) -> str:
    with pytest.raises(CdError) as caught:
        OUTSIDE[name]()
    assert not isinstance(caught.value, CdInternalError)
    return str(caught.value)


@pytest.mark.parametrize("name", OUTSIDE)
def test_message_without_a_place(golden: Golden, name: str) -> None:
    message = outside_error(name)
    assert code_of(message)
    golden(f"outside/{name}.err")(message)


@pytest.mark.parametrize("name", OUTSIDE)
def test_message_without_a_place_has_its_other_parts(name: str) -> None:
    found = grades(CASES["add_text"], outside_error(name))
    assert found["what"]
    assert found["code"]
    assert found["fix"], "nothing to type is offered"


# ---------------------------------------------------------------- the page


def test_the_page_shows_the_programs_and_messages_of_the_tests() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert text == page.refreshed(text), "run python -m tests.errors.page"


def test_most_entries_of_the_page_have_an_example() -> None:
    entries = re.findall(r"^## (CD\d{4})", page.PAGE.read_text("utf-8"), re.MULTILINE)
    without = {code for code in entries if code not in page.examples()}
    faults = {code for code in without if code.startswith("CD09")}
    assert len(without - faults) < 16, sorted(without - faults)
