"""A pass applied to a few lines of the language, as text: for tests and for examples of passes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import plusequals as pe
from plusequals.lowering.ir.decision import Decided
from plusequals.lowering.ir.loops import Comment, Program, Stmt
from plusequals.lowering.ir.printer import print_program, print_statement
from plusequals.lowering.ir.rewrite import map_kernels, map_statements, rename
from plusequals.lowering.ir.verify import verify_program
from plusequals.lowering.lower import lower

_SHORT = {"f32": "float32", "f64": "float64", "i64": "int64", "i32": "int32", "b": "bool",
          "u8": "uint8", "f16": "float16", "c128": "complex128"}  # fmt: skip
NAMES = {"np": np}


def lowered(body: str, **arrays: str) -> Program:
    """Return the loops of a function body; `x="f32[8, 9]"` declares a parameter."""
    text = f"def f({', '.join(arrays)}):\n" + textwrap.indent(
        textwrap.dedent(body).strip("\n"), "    "
    )
    function = pe.cd_from_source(text + "\n", NAMES)
    return lower(function.procedure(*(array(spec) for spec in arrays.values())))


def shared(program: Program) -> Program:
    """Return the program with one local for all of one label, as the copies of a loop that a
    schedule cuts have it."""
    kept = {node.label: node for node in reversed(program.locals)}
    to = {node.id: kept[node.label] for node in program.locals if kept[node.label] is not node}
    program = map_kernels(program, lambda body: rename(body, {}, to))
    return replace(program, locals=tuple(n for n in program.locals if n.id not in to))


def array(spec: str) -> np.ndarray | np.generic:
    """Return zeros for `f32[8, 9]`, or a number for `f32`."""
    match = re.fullmatch(r"(\w+)(?:\[(.*)\])?", spec)
    assert match is not None, spec
    dtype = np.dtype(_SHORT[match[1]])
    if match[2] is None:
        return dtype.type(0)
    return np.zeros(tuple(int(size) for size in match[2].split(",")), dtype)


def text_of(program: Program) -> str:
    """Return the statements of the only kernel as text, without comments and indentation."""
    bare = map_kernels(
        program,
        lambda body: map_statements(body, lambda s: () if isinstance(s, Comment) else (s,)),
    )
    lines = print_program(bare).splitlines()
    start = next(n for n, line in enumerate(lines) if line.lstrip().startswith("kernel "))
    return textwrap.dedent("\n".join(lines[start + 1 :]))


def print_loops(body: tuple[Stmt, ...]) -> None:
    """Print statements as text."""
    for stmt in body:
        print(print_statement(stmt).rstrip())


def after(change: Callable[[Program], Program | Decided], body: str, **arrays: str) -> str:
    """Return the loops of a function body after a pass, as text."""
    made = change(lowered(body, **arrays))
    program = made.program if isinstance(made, Decided) else made
    verify_program(program)
    return text_of(program)


def show(change: Callable[[Program], Program | Decided], body: str, **arrays: str) -> None:
    """Print what `after` returns: what the examples of the passes call."""
    print(after(change, body, **arrays))
