"""The lines that functions were defined in, and what is said where there are none."""

import errno
import os
import subprocess
import sys
from typing import Any

import pytest

from plusequals.base.diagnostic import CdBackendError, CdSyntaxError
from plusequals.dsl.source import definition_lines
from plusequals.dsl.source.function_source import read_source

PROGRAM = """
from plusequals import cd
names = {}
@cd
def f(x):
    return x * 2
exec("def g(x):\\n    return x", names)
print(f(3), f.on("numpy")(3))
cd(names["g"])
"""


def ran(*options: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)


def test_a_command_is_read_from_the_arguments_of_the_process() -> None:
    done = ran("-W", "error", "-Bc", PROGRAM, "-c")
    assert done.stdout == "6 6\n"
    assert "`g` cannot be read: it was defined in `<string>`, which keeps none" in done.stderr


def test_standard_input_is_read_once() -> None:
    assert ran("-", given=PROGRAM).stderr.endswith(
        "error[CD0101]: the text of `f` cannot be read: it came from standard input, which is read "
        "only once\n"
        "  = help: save the program as a file, and run that: `python program.py`\n"
        "  = help: or give the text itself: `pe.cd_from_source(text)`\n"
    )


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="this prompt keeps what was typed")
def test_the_prompt_keeps_nothing() -> None:
    told = ran("-i", given="from plusequals import cd\ncd(lambda x: x)\n").stderr
    assert "`<lambda>` cannot be read: this prompt keeps no text of what was typed" in told
    assert "the prompt of Python 3.13" in told


def test_exec_has_no_text() -> None:
    namespace: dict[str, object] = {}
    exec("def f(x):\n    return x", namespace)
    with pytest.raises(CdSyntaxError) as caught:
        read_source(namespace["f"])
    assert caught.value.code == "CD0101"
    assert str(caught.value) == (
        "error[CD0101]: the text of `f` cannot be read: it was defined in `<string>`, which keeps "
        "none\n"
        "  = help: put `f` in a file and import it\n"
        "  = help: or give the text itself: `pe.cd_from_source(text)`"
    )


@pytest.mark.parametrize("filename", ["<string>", "gone.py"])
def test_missing_files_have_no_text(filename: str) -> None:
    namespace: dict[str, object] = {}
    exec(compile("f = lambda x: x", filename, "exec"), namespace)
    with pytest.raises(CdSyntaxError) as caught:
        read_source(namespace["f"])
    assert caught.value.code == "CD0101"
    assert filename in str(caught.value)


def test_a_process_without_files_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    scope: dict[str, Any] = {}
    exec(compile("def f(x):\n    return x\n", "/nowhere/made.py", "exec"), scope)
    assert definition_lines.lines_of(scope["f"]) == []
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(CdBackendError, match="no file can be opened"):
        definition_lines.lines_of(scope["f"])
