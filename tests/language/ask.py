"""Short ways to run a few lines of the language, and to ask for the error that they deserve."""

from __future__ import annotations

import math
import re
import textwrap
from typing import Any

import numpy as np
import pytest

import plusequals as pe

from ..compare import run_on


def program(params: str, body: str) -> str:
    """Return the text of a function `f` with these parameters and this body."""
    return f"def f({params}):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"


def compiled(params: str, body: str, **names: Any) -> Any:
    """Return the callable for the body; `names` are what it captures beside np and math."""
    return pe.cd_from_source(program(params, body), {"np": np, "math": math, **names})


def run(backend: str, params: str, body: str, *args: Any, **names: Any) -> Any:
    """Return what the body returns for the arguments on a backend."""
    return run_on(backend, compiled(params, body, **names), *args)


def plain(params: str, body: str, *args: Any, **names: Any) -> Any:
    """Return what Python and NumPy make of the same text."""
    scope: dict[str, Any] = {"np": np, "math": math, **names}
    exec(compile(program(params, body), "<case>", "exec"), scope)
    return scope["f"](*args)


def refused(
    params: str,
    body: str,
    *args: Any,
    error: type[Exception] | None = None,
    says: tuple[str, ...] = (),
    offers: tuple[str, ...] = (),
    backend: str = "numpy",
    **names: Any,
) -> Any:
    """Expect a CdError for the body, well made, and return it.

    `says` has to be in the message, the labels or the notes (not only in the excerpt of the
    source), `offers` in the helps.
    """
    with pytest.raises(error or pe.CdError) as caught:
        run(backend, params, body, *args, **names)
    found = caught.value
    assert isinstance(found, pe.CdError)
    assert all(re.fullmatch(r"CD\d{4}", one.code) for one in found.diagnostics)
    assert all(one.labels and one.labels[0].span.line >= 1 for one in found.diagnostics), found
    told = "\n".join(
        line
        for one in found.diagnostics
        for line in (one.message, *(label.text for label in one.labels), *one.notes)
    )
    helps = "\n".join(line for one in found.diagnostics for line in one.helps)
    for fragment in says:
        assert fragment in told, f"{fragment!r} is not said in:\n{found}"
    for fragment in offers:
        assert fragment in helps, f"{fragment!r} is not offered in:\n{found}"
    return found
