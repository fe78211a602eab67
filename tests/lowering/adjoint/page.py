"""docs/derivatives.md: how each operation and each form of statement is differentiated.

`python -m tests.lowering.adjoint.page` writes the page from the table of operations, their rules,
and the adjoints of small programs; `test_page` holds it to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent

import numpy as np

import plusequals as pe
from plusequals.base.diagnostic import CdError
from plusequals.dsl.gradient.spelling import UNSPELLED, value_text
from plusequals.lowering.adjoint.rules import partials
from plusequals.lowering.ir import dtypes
from plusequals.lowering.ir.expressions import Apply, Const, Read
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS, Op
from plusequals.lowering.ir.text import Scope

PAGE = Path(__file__).resolve().parents[3] / "docs" / "derivatives.md"
HEAD = """\
# Derivatives

How [gradients](gradients.md) are made of each operation and of each form of statement. This page is
written by `python -m tests.lowering.adjoint.page`, from the rules themselves.

## Operations

Partial derivatives by the operands `x`, `y` and `z`. A test, an integer and what is constant piece
by piece have the derivative 0; what is refused raises CD0480 where its value depends on what is
differentiated in.

"""
STATEMENTS = """
## Statements

Small programs, and what follows their statements in the text of the gradient in `x` and `w` of the
sum of `y`. `d_y` is the cotangent of `y`, and `y_kept` holds values that were overwritten.
"""
_SEED = re.compile(r" *d_\w+(\[.*\])? \+?= (?!np\.zeros|0\.0$)")
"""A statement that gives a cotangent a value."""
EXPONENTS = (("whole_pow", 12.0), ("half_pow", 2.5))

PROGRAMS = {
    "Assign: elements": "y[i] = x[i] * w[i]",
    "Assign: elements of themselves": "y[i] = x[i] * w[i]; y[i] = y[i] * y[i]",
    "Assign: a part": "y = x.copy(); y[1:] = w[:-1] * x[1:]",
    "Assign: an update": "y = x.copy(); y[i] += w[i] * x[i]",
    "Assign: a sum": "y = np.zeros(4); y[i] = sum[k <= i](x[k] * w[k])",
    "Assign: a product": "y = np.prod(x) * w",
    "Assign: a maximum": "y = np.max(x) * w",
    "Assign: positions from data": "y[i] = x[p[i]] * w[i]",
    "Assign: a choice": "y[i] = x[i] if w[i] > 0.5 else x[i] * w[i]",
    "Permute": """
        y = x.copy()
        for t in range(n):
            x, y = y * w, x""",
    "Let": """
        y = x.copy()
        for t in range(p[0]):
            y *= w""",
    "Alloc": "y = np.zeros(p[0]); y[:] = x[0] * w[1]",
    "For": """
        y = x.copy()
        for t in range(1, n):
            y[t] = y[t - 1] * w[t]""",
    "Branch": """
        y = x.copy()
        if x[0] > 0.5:
            y = x * w""",
    "While": """
        y = x.copy()
        while y[0] < 2.0:
            y = y * 1.5 + w""",
    "Break": """
        y = x.copy()
        for t in range(n):
            if y[t] > 0.5:
                break
            y[t] *= w[t]""",
    "Continue": """
        y = x.copy()
        for t in range(n):
            if y[t] > 0.5:
                continue
            y[t] *= w[t]""",
    "Block": """
        with comment("scaled"):
            y = x * w""",
    "Check": "assert x[0] > 0; y = x * w",
    "Print": "print(x[0]); y = x * w",
}
"""A program for each form: what it leaves in `y` is summed."""
NOTES = {
    "Check": "A check has no adjoint: the text makes it.",
    "Print": "What is printed is left out.",
}


def page() -> str:
    """Return the whole page."""
    rows = [f"| {cell} | {derivative} |" for cell, derivative in operations()]
    table = ["| operation | derivatives |", "| --- | --- |", *rows]
    return HEAD + "\n".join(table) + "\n" + STATEMENTS + "".join(map(section, PROGRAMS))


def operations() -> Iterator[tuple[str, str]]:
    """Yield each operation of the table, and its derivatives or how it is treated."""
    for op in OPS.values():
        operands = _operands(op)
        whole = Apply(op, operands, _result(op))
        text = op.name if op.name in UNSPELLED else value_text(whole, Scope())
        yield f"`{_escaped(text)}`", treatment(op, whole)


def _operands(op: Op) -> tuple[Read | Const, ...]:
    dtype = next(known for kind, known in _TYPES.items() if kind in op.admits)
    nodes = (Node(at, "xyz"[at], (), dtype) for at in range(op.arity))
    operands: list[Read | Const] = [Read(node, ()) for node in nodes]
    for name, exponent in EXPONENTS:
        if op.name == name:
            operands[1] = Const(exponent, dtype)
    return tuple(operands)


_TYPES = {
    "f": dtypes.float64, "c": dtypes.complex128, "i": dtypes.int64, "b": dtypes.bool_,
}  # fmt: skip


def _result(op: Op) -> dtypes.DType:
    return dtypes.bool_ if op.result == "bool" else _operands(op)[0].dtype


def treatment(op: Op, whole: Apply) -> str:
    """Return the derivatives of an operation as text, or why it has none."""
    if op.result == "bool":
        return "0, a test"
    if op.name in ("rank", "ordinal", "of_rank"):
        return "refused, a sort"
    if op.admits == "c" or op.result == "complex":
        return "refused, a complex number"
    if "f" not in op.admits:
        return "0, an integer"
    found = partials(whole)
    if found is None:
        return "refused, no rule"
    if not any(found):
        return "0, constant piece by piece"
    texts = ("0" if one is None else f"`{_escaped(value_text(one, Scope()))}`" for one in found)
    return ", ".join(texts)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def section(name: str) -> str:
    """Return the section of a form of statement."""
    body = dedent(PROGRAMS[name].strip("\n")).replace("; ", "\n")
    note = f"\n{NOTES[name]}\n" if name in NOTES else ""
    return f"\n### {name}\n{note}\n```python\n{body}\n```\n\n```text\n{adjoint_text(body)}\n```\n"


def adjoint_text(body: str) -> str:
    """Return the adjoint statements of a program, or why it has none."""
    lines = indent(body, "    ")
    text = f"def f(x, w, p, n):\n{lines}\n    return np.sum(y)\n"
    rng = np.random.default_rng(1)
    with pe.override("numpy"):
        f = pe.cd_from_source(text, {"np": np, "comment": pe.comment})
        try:
            given = rng.random(4), rng.random(4), np.array([2, 0, 3, 1]), 4
            made = pe.gradient(f, wrt=("x", "w")).text(*given)
        except CdError as why:
            return f"{why.code}: {why.diagnostics[0].message}"
    return adjoint_part(made)


def adjoint_part(text: str) -> str:
    """Return the statements from the first one that gives a cotangent a value, other than zeros."""
    lines = dedent(text.partition("\n")[2]).strip("\n").splitlines()[:-1]
    heads = [n for n, line in enumerate(lines) if not line.startswith(" ")]
    for n, end in zip(heads, (*heads[1:], len(lines)), strict=True):
        if any(_SEED.match(line) for line in lines[n:end]):
            return "\n".join(lines[n:])
    return ""


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
