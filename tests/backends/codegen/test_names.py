"""Identifiers: harmless, unique, and the user's own where that is possible."""

import re
import shutil
import subprocess

import pytest

from plusequals.backends.codegen import prelude
from plusequals.backends.codegen.dialect import C
from plusequals.backends.codegen.names import MAX_LENGTH, RESERVED, Names, identifier, is_reserved


@pytest.mark.parametrize(
    "label",
    ["int", "restrict", "main", "expf", "y0", "NAN", "I", "__x", "_Bool", "pe_c64", "class", "",
     "9", "a*/b", "größe", "x\ny", "名前", "a;system()", "x" * 500, "INT64_MIN", "fault", "a\\"],
)  # fmt: skip
def test_any_label_becomes_a_harmless_identifier(label: str) -> None:
    name = Names(prelude.is_prelude_name).fresh(label)
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name)
    assert len(name) <= MAX_LENGTH + 3
    assert name not in RESERVED


def test_names_are_unique_and_come_back_after_their_scope() -> None:
    names = Names(prelude.is_prelude_name)
    assert [names.fresh("i"), names.fresh("i"), names.fresh("i_2")] == ["i", "i_2", "i_2_2"]
    names.release(["i"])
    assert names.fresh("i") == "i"
    assert names.fresh("exp_f32") == "exp_f32_2"


def test_an_ordinary_label_stays_as_it_is() -> None:
    assert [identifier(name) for name in ("x", "alpha2", "p.grad", "w_in")] == [
        "x", "alpha2", "p_grad", "w_in",
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on this machine")
def test_everything_that_the_headers_declare_is_reserved_or_differs_from_our_functions() -> None:
    system = "".join(f"#include <{name}.h>\n" for name in ("math", "stdlib", "string"))
    text = f"#define _GNU_SOURCE\n{system}{C.header}\n"
    done = subprocess.run(
        ["gcc", "-E", "-P", "-"], input=text, capture_output=True, text=True, check=True
    )
    functions = set(re.findall(r"\b([a-z]\w*) \(", done.stdout))
    assert "qsort" in functions
    assert not [name for name in functions if f"{name}_body" in functions]
    assert not [name for name in functions if name.startswith("pe_")]
    assert is_reserved("qsort") and is_reserved("sinf") and is_reserved("sinl")
