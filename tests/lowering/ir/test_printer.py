"""Both IRs as text, against listings written out here."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import numpy as np

import plusequals as pe
from plusequals.base.diagnostic import NOWHERE
from plusequals.lowering.ir import assignments, dtypes, instructions, loops, printer
from plusequals.lowering.ir.assignments import (
    Alloc,
    Block,
    Branch,
    Break,
    Check,
    Continue,
    Fault,
    For,
    Let,
    Pair,
    Permute,
    Print,
    While,
)
from plusequals.lowering.ir.indexing import Symbol, minimum, var
from plusequals.lowering.ir.node import Node
from plusequals.lowering.ir.ops import OPS, PAIR_OPS
from plusequals.lowering.ir.text import Scope
from plusequals.lowering.lower import lower

from .build import (
    acc,
    aff,
    ap,
    at,
    best,
    i64,
    node,
    num,
    over,
    pos,
    procedure,
    program,
    put,
    read,
    red,
    rng,
    symbols,
)

I, J, K, N = symbols("i j k n")
X, Y, M, W = node(0, "x", 4, 5), node(1, "y", 4, 5), node(2, "m", 4), node(3, "w", dtype=i64)
FAULT = Fault("CD0301", "CdIndexError", "index {0} is outside")


def listing(text: str) -> str:
    return dedent(text).lstrip("\n")


def test_procedure_with_every_kind_of_assignment() -> None:
    rows, cells = rng(I, 0, 4), rng(J, 0, 5)
    pair = Pair(at(W), aff(J))
    p = procedure(
        (Y,), (X, Node(4, "t", (aff(4), aff(5)), dtypes.float64, (1, 4))),
        red(at(M, I), "max", read(X, I, J), over(rows), over(cells)),
        acc(at(M, I), "add", read(X, I, J), over(rows), over(cells)),
        acc(at(M, I), "max", read(M, I), over(rows, where=ap("lt", read(M, I), num(0.0)))),
        acc(at(M, 0), "sub", num(1.0), over()),
        put(at(Y, I, J), ap("exp", ap("sub", read(X, I, J), read(M, I))), rows, rng(J, I, 5)),
        best("argmin", at(M, I), pair, read(X, I, J), over(rows), over(cells)),
        put(at(M, read(W)), num(2.5), where=ap("gt", read(W), num(0, i64))),
        local=(M, W), name="demo",
    )  # fmt: skip
    assert printer.print_procedure(p) == listing(
        """
        procedure demo(y: f32[4, 5] written, x: f32[4, 5], t: f64[4, 5] strides (1, 4)):
            local m: f32[4]
            local w: i64
            m[i] = max over j in [0, 5): x[i, j]    for i in [0, 4)
            m[i] += over j in [0, 5): x[i, j]    for i in [0, 4)
            m[i] max= m[i]    for i in [0, 4) where m[i] < 0.0
            m[0] -= 1.0
            y[i, j] = exp(x[i, j] - m[i])    for i in [0, 4), j in [i, 5)
            m[i], w = argmin over j in [0, 5): x[i, j] at j    for i in [0, 4)
            m[w] = 2.5    where w > 0
        """
    )


def test_statements_with_bodies() -> None:
    row = node(5, "row", N)
    test = ap("lt", read(W), num(9, i64))
    body = (
        For(
            K, aff(0), aff(9), 2,
            (
                Branch(test, (Break(),), (Branch(test, (Continue(),), ()),)),
                Branch(test, (), (Break(),)),
            ),
        ),
        While((), test, (acc(at(W), "add", num(1, i64), over()),)),
        While((Let(N, read(W)),), ap("lt", pos(N), num(9, i64)), (Alloc(row),)),
        Block("it's a block", (Permute((X, Y), (Y, X)),)),
        Check(test, FAULT, (read(W),), over(rng(I, 0, 4))),
        Print(("w = ", read(W))),
    )  # fmt: skip
    p = procedure((X, Y, W), (), *body, local=(row,), name="flow")
    assert printer.print_procedure(p) == listing(
        """
        procedure flow(x: f32[4, 5] written, y: f32[4, 5] written, w: i64 written):
            local row: f32[n]
            for k in 0..9 step 2:
                if w < 9:
                    break
                elif w < 9:
                    continue
                if w < 9:
                    pass
                else:
                    break
            while w < 9:
                w += 1
            loop:
                let n = w
                while n < 9
                alloc row: f32[n]
            with comment("it's a block"):
                permute x, y = y, x
            check w < 9 else CdIndexError('CD0301', 'index {0} is outside', w)    for i in [0, 4)
            print('w = ', w)
        """
    )


def test_program() -> None:
    edge = minimum(var(I) * 4 + 4, var(N))
    p = program(
        (Y, M, W), (X,),
        loops.Comment("y = ...\nin two lines"),
        loops.Fill(Y, num(0.0)),
        loops.For(
            I, aff(0), aff(4), 1,
            (
                loops.For(J, var(I) * 4, edge, 1, (loops.Store(at(Y, I, J), num(1.0)),), "vector"),
                loops.If(ap("lt", pos(I), num(2, i64)), (), ()),
            ),
            "parallel",
        ),
        loops.Update(at(M, 0), OPS["max"], read(X, 0, 0)),
        loops.Update(at(M, 0), OPS["mul"], read(X, 0, 0)),
        instructions.CopyVector(at(M, 0), read(X, 1, 0), 4, (-1, -1)),
        instructions.StoreVector(at(Y, 1, 2), -2, (num(1.0), read(W))),
        instructions.MatMul(
            at(M, I), read(X, I, J), read(W),
            (rng(I, 0, 4), rng(N, 0, 4), rng(J, 0, 5)), "warp",
        ),
        loops.LastBlock((instructions.AwaitProducts(M),)),
        loops.Update(at(M, 0), PAIR_OPS["argmax"], read(X, 0, 0), Pair(at(W), aff(3))),
        loops.Check(ap("lt", read(W), num(2, i64)), FAULT, (read(W),)),
        name="tiles",
    )  # fmt: skip
    assert printer.print_program(p) == listing(
        """
        program tiles(y: f32[4, 5] written, m: f32[4] written, w: i64 written, x: f32[4, 5]):
            kernel tiles:
                # y = ...
                # in two lines
                y[...] = 0.0
                for i in 0..4 parallel:
                    for j in 4*i..min(4*i + 4, n) vector:
                        y[i, j] = 1.0
                    if i < 2:
                        pass
                m[0] max= x[0, 0]
                m[0] *= x[0, 0]
                m[0..+4] = x[1, 0..+4]
                y[1..+2, 2] = 1.0, w
                warp product: m[i] += x[i, j] * w    for i in [0, 4), n in [0, 4), j in [0, 5)
                last block:
                    await products of m
                m[0], w argmax= x[0, 0] at 3
                check w < 2 else CdIndexError('CD0301', 'index {0} is outside', w)
        """
    )


def test_names_are_told_apart_only_where_both_are_in_scope() -> None:
    again = Symbol("i", 20)
    inner = put(at(Y, I, again), num(1.0), rng(again, 0, 5))
    p = procedure(
        (Y,), (),
        For(I, aff(0), aff(4), 1, (inner,)),
        put(at(Y, again, 0), num(0.0), rng(again, 0, 4)),
    )  # fmt: skip
    assert printer.print_procedure(p).splitlines()[1:] == [
        "    for i in 0..4:",
        "        y[i, i_2] = 1.0    for i_2 in [0, 5)",
        "    y[i, 0] = 0.0    for i in [0, 4)",
    ]


def test_long_lines_break_outside_of_strings() -> None:
    total = read(X, I, J)
    for _ in range(12):
        total = ap("add", total, read(X, I, J))
    text = printer.print_statement(put(at(Y, I, J), total, rng(I, 0, 4), rng(J, 0, 5)))
    assert [len(line) <= 100 for line in text.splitlines()] == [True, True]
    assert text.splitlines()[1].startswith("        ")
    assert " ".join(text.split()).endswith("x[i, j] for i in [0, 4), j in [0, 5)")
    talk = "a b " * 30
    shown = printer.print_statement(Print((talk, read(W))))
    assert repr(talk) in shown


def test_single_pieces() -> None:
    assert printer.print_expr(ap("add", read(X, I, J), num(1.0))) == "x[i, j] + 1.0"
    assert printer.print_index(var(I) * 2 + 1) == "2*i + 1"
    assert printer.print_statement(assignments.Break()) == "break"


def test_printing_twice_gives_the_same_text() -> None:
    p = procedure((Y,), (X,), put(at(Y, I, J), read(X, I, J), rng(I, 0, 4), rng(J, 0, 5)))
    assert printer.print_procedure(p) == printer.print_procedure(p)


def test_lines_tell_where_they_come_from() -> None:
    text = "def f(y, x):\n    m[i] = max(x[i, j])\n    for t in range(2):\n        y[i] += m[i]\n"
    p = pe.cd_from_source(text, {}).procedure(np.zeros(3), np.zeros((3, 4)))
    by_line = {line.text.strip(): line.span.line for line in printer.procedure_lines(p)}
    assert by_line["for t in 0..2:"] == 3
    assert by_line["y[i] += m[i]    for i in [0, 3)"] == 4
    lines = printer.program_lines(lower(p))
    assert "\n".join(line.text for line in lines) + "\n" == printer.print_program(lower(p))
    assert [line.span for line in lines if "kernel" in line.text] == [NOWHERE]
    places = [line.span.line for line in lines if line.span is not NOWHERE]
    assert places == sorted(places) and set(places) == {2, 3, 4}
    (comment,) = (line for line in lines if line.text.strip() == "# y[i] += m[i]")
    assert comment.span.line == 4


def test_names_are_kept_from_one_listing_to_the_next() -> None:
    text = "def f(y, x):\n    y[i] = sum[j](x[i, j]) / (1 + sum[j](x[j, i]))\n"
    p = pe.cd_from_source(text, {}).procedure(np.zeros(3), np.zeros((3, 3)))
    names = Scope()
    loops_ = lower(p)
    printer.program_lines(replace(loops_, locals=loops_.locals[1:], kernels=()), names)
    assert [names.node(node) for node in loops_.locals] == ["total_2", "total"]
    shown = "\n".join(line.text for line in printer.procedure_lines(p, names))
    assert "y[i] = total_2[i] / (1.0 + total[i])" in shown
