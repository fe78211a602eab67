"""Printer of both IRs: Python-like text, deterministic, at most 100 columns.

    procedure softmax(y: f32[512, 1024] written, x: f32[512, 1024]):
        local m: f32[512]
        m[i] = max over j in [0, 1024): x[i, j]    for i in [0, 512)

IR 2 says `program`, one `kernel` each, and loops `for i in 0..512:`. Names are the user's; where
a name is taken in the scope, `_2` is appended. Continued lines are indented further.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import NamedTuple, assert_never

from ...base.diagnostic import NOWHERE, Span
from . import assignments, loops
from .assignments import Access, Assign, Fault, Pair, Parameter, Procedure
from .expressions import Domain, Dynamic, Expr, Index
from .indexing import Affine
from .instructions import AwaitProducts, CopyVector, Instruction, MatMul, StoreVector
from .loops import AnyStatement, Program
from .node import Node
from .ops import Op
from .text import INFIX, Scope, domain_text, element_text, expr_text, index_text, reduction_name

_WIDTH = 100
_INDENT = "    "


class Line(NamedTuple):
    """A line of text, and its span in the user's source."""

    text: str
    span: Span = NOWHERE


def print_procedure(procedure: Procedure) -> str:
    """Return IR 1 as text, with a line end after the last line."""
    return _joined(procedure_lines(procedure)) + "\n"


def print_program(program: Program) -> str:
    """Return IR 2 as text, with a line end after the last line."""
    return _joined(program_lines(program)) + "\n"


def procedure_lines(procedure: Procedure, names: Scope | None = None) -> list[Line]:
    """Return IR 1 line by line; names of nodes are looked up and stored in `names`, if given."""
    p, scope = procedure, names or Scope()
    lines = _header("procedure", p.name, p.parameters, p.locals, p.results, scope)
    return lines + _body(p.body, scope, 1)


def program_lines(program: Program, names: Scope | None = None) -> list[Line]:
    """Return IR 2 line by line; names of nodes are looked up and stored in `names`, if given."""
    p, scope = program, names or Scope()
    lines = _header("program", p.name, p.parameters, p.locals, p.results, scope)
    for kernel in p.kernels:
        lines.append(Line(f"{_INDENT}kernel {kernel.name}:"))
        lines += _body(kernel.body, scope, 2)
    return lines


def print_statement(statement: AnyStatement) -> str:
    """Return a statement of either IR as text, its body included, without a last line end."""
    return _joined(_statement(statement, Scope(), 0))


def _joined(lines: Iterable[Line]) -> str:
    return "\n".join(line.text for line in lines)


def print_expr(expr: Expr) -> str:
    """Return an expression as text."""
    return expr_text(expr, Scope())


def print_index(index: Affine) -> str:
    """Return an index expression as text."""
    return index_text(index, Scope())


def _header(
    word: str,
    name: str,
    parameters: tuple[Parameter, ...],
    locals_: tuple[Node, ...],
    results: tuple[Node, ...],
    scope: Scope,
) -> list[Line]:
    parameter_texts = [_declare(p.node, scope) + _parameter_flags(p) for p in parameters]
    lines = _wrap_lines(f"{word} {name}({', '.join(parameter_texts)}):", 0)
    for role, nodes in (("local", locals_), ("result", results)):
        for node in nodes:
            lines += _wrap_lines(f"{role} {_declare(node, scope)}", 1)
    return lines


def _parameter_flags(parameter: Parameter) -> str:
    return " written" * parameter.written + " and brought home" * parameter.returns


def _declare(node: Node, scope: Scope) -> str:
    shape = ", ".join(index_text(extent, scope) for extent in node.shape)
    text = f"{scope.node(node)}: {node.dtype.short}" + (f"[{shape}]" if node.shape else "")
    if node.nearest is not None:
        text += f" copied from neighbours along axis {node.nearest}"
    return text if node.strides is None else f"{text} strides {node.strides}"


def _body(statements: Sequence[AnyStatement], scope: Scope, depth: int) -> list[Line]:
    """The lines of a body. A line without a span has its statement's; a comment has that of the
    statement which it heads."""
    inner = scope.inner()
    lines: list[Line] = []
    for at, statement in enumerate(statements):
        spans = (getattr(following, "span", NOWHERE) for following in statements[at:])
        span = next((candidate for candidate in spans if candidate is not NOWHERE), NOWHERE)
        statement_lines = _statement(statement, inner, depth)
        lines += (
            line if line.span is not NOWHERE else Line(line.text, span) for line in statement_lines
        )
    return lines or _wrap_lines("pass", depth)


def _statement(statement: AnyStatement, scope: Scope, depth: int) -> list[Line]:
    """The lines of a statement; a `Let` binds the name of its symbol in the scope."""
    match statement:
        case assignments.For() | loops.For():
            return _for(statement, scope, depth)
        case assignments.While() | loops.While():
            return _while(statement, scope, depth)
        case assignments.Branch(test, then, orelse) | loops.If(test, then, orelse):
            return _branch("if", test, then, orelse, scope, depth)
        case assignments.Block(comment, body):
            return _wrap_lines(f"with comment({comment!r}):", depth) + _body(body, scope, depth + 1)
        case loops.LastBlock(body):
            return _wrap_lines("last block:", depth) + _body(body, scope, depth + 1)
        case loops.Comment(text):
            return [line for row in text.splitlines() for line in _wrap_lines(row, depth, "# ")]
        case _:
            return _wrap_lines(_simple(statement, scope), depth)


def _simple(
    statement: Assign
    | assignments.Let
    | assignments.Alloc
    | assignments.Permute
    | assignments.Check
    | assignments.Print
    | assignments.Break
    | assignments.Continue
    | loops.Store
    | loops.Update
    | loops.Fill
    | loops.Check
    | loops.Barrier
    | Instruction,
    scope: Scope,
) -> str:
    """The text of a statement without a body."""
    match statement:
        case Assign():
            return _assign(statement, scope.inner())
        case assignments.Let(symbol, value):
            text = expr_text(value, scope)
            return f"let {scope.symbol(symbol)} = {text}"
        case assignments.Alloc(node):
            return f"alloc {_declare(node, scope)}"
        case assignments.Permute(nodes, sources):
            return f"permute {_names(nodes, scope)} = {_names(sources, scope)}"
        case assignments.Check(test, fault, values, over):
            inner = scope.inner()
            domain = _clause("for", over, inner)
            return f"check {_check(test, fault, values, inner)}{domain}"
        case loops.Check(test, fault, values):
            return f"check {_check(test, fault, values, scope)}"
        case assignments.Print(items):
            texts = [repr(p) if isinstance(p, str) else expr_text(p, scope) for p in items]
            return f"print({', '.join(texts)})"
        case assignments.Break():
            return "break"
        case assignments.Continue():
            return "continue"
        case loops.Store(access, value):
            return f"{_access(access, scope)} = {expr_text(value, scope)}"
        case loops.Update(access, op, value, pair):
            left, at = _target(access, pair, scope)
            update = f"{left} {_sign(op)}= {expr_text(value, scope)}{at}"
            return f"atomic {update}" if statement.atomic else update
        case loops.Fill(node, value):
            return f"{scope.node(node)}[...] = {expr_text(value, scope)}"
        case loops.Barrier(later):
            return f"barrier, {later} later" if later else "barrier"
        case CopyVector() | StoreVector() | MatMul() | AwaitProducts():
            return _instruction(statement, scope)
        case _:
            assert_never(statement)


def _assign(assign: Assign, scope: Scope) -> str:
    """`m[i] = max over j in [0, 4): x[i, j]    for i in [0, 4)`; the scope is the statement's."""
    free = _clause("for", assign.free, scope)
    left, _ = _target(assign.target, assign.pair, scope)
    over = _clause("over", assign.reduced, scope).strip()
    value = expr_text(assign.value, scope) + _target(assign.target, assign.pair, scope)[1]
    if assign.op is None:
        head = f"{left} = {over + ': ' if over else ''}"
    elif assign.initialize:
        head = f"{left} = {reduction_name(assign.op)}{' ' + over if over else ''}: "
    else:
        head = f"{left} {_sign(assign.op)}= {over + ': ' if over else ''}"
    return head + value + free


def _clause(word: str, domain: Domain, scope: Scope) -> str:
    """`    for i in [0, 4) where x[i] > 0`, the empty text for a domain of one point."""
    text = domain_text(domain, scope)
    return f"{_INDENT}{word + ' ' if domain.ranges else ''}{text}" if text else ""


def _target(access: Access, pair: Pair | None, scope: Scope) -> tuple[str, str]:
    """The text left of the sign, and the text after the value."""
    if pair is None:
        return _access(access, scope), ""
    left = f"{_access(access, scope)}, {_access(pair.access, scope)}"
    return left, f" at {index_text(pair.position, scope)}"


def _access(access: Access, scope: Scope) -> str:
    return element_text(access.node, access.index, scope)


def _instruction(statement: Instruction, scope: Scope) -> str:
    match statement:
        case CopyVector(target, source, count, (axis, other)):
            left, read = _vector(target, axis, count, scope), Access(source.node, source.index)
            return f"{left} = {_vector(read, other, count, scope)}"
        case StoreVector(access, axis, values):
            texts = [expr_text(value, scope) for value in values]
            return f"{_vector(access, axis, len(values), scope)} = {', '.join(texts)}"
        case MatMul():
            return _matmul(statement, scope.inner())
        case AwaitProducts(node):
            return f"await products of {scope.node(node)}"


def _matmul(matmul: MatMul, scope: Scope) -> str:
    """`warp product: s[r, c] += a[r, k] * b[k, c]    for r in [0, 4), c in [0, 4), k in [0, 8)`.

    The scope is the statement's.
    """
    over = _clause("for", Domain(matmul.over), scope)
    first, second = expr_text(matmul.first, scope), expr_text(matmul.second, scope)
    left = _access(matmul.accumulator, scope)
    return f"{matmul.unit} product: {left} += {first} * {second}{over}"


def _vector(access: Access, axis: int, count: int, scope: Scope) -> str:
    """The text of a vector: `x[i, 4*j..+4]`, the four elements from `x[i, 4*j]` on."""
    name, texts = scope.node(access.node), [_subscript(one, scope) for one in access.index]
    texts[axis] += f"..+{count}"
    return f"{name}[{', '.join(texts)}]"


def _subscript(index: Index, scope: Scope) -> str:
    return expr_text(index.value, scope) if isinstance(index, Dynamic) else index_text(index, scope)


def _sign(op: Op) -> str:
    return INFIX[op.name][0] if op.name in INFIX and INFIX[op.name][1] > 5 else op.name


def _names(nodes: Iterable[Node], scope: Scope) -> str:
    return ", ".join(scope.node(node) for node in nodes)


def _check(test: Expr, fault: Fault, values: tuple[Expr, ...], scope: Scope) -> str:
    parts = [repr(fault.code), repr(fault.message), *(expr_text(v, scope) for v in values)]
    return f"{expr_text(test, scope)} else {fault.kind}({', '.join(parts)})"


def _for(loop: assignments.For | loops.For, scope: Scope, depth: int) -> list[Line]:
    lo, hi = index_text(loop.lo, scope), index_text(loop.hi, scope)
    step = f" step {loop.step}" if loop.step != 1 else ""
    kind = f" {loop.kind}" if isinstance(loop, loops.For) and loop.kind != "serial" else ""
    inner = scope.inner()
    head = f"for {inner.symbol(loop.symbol)} in {lo}..{hi}{step}{kind}:"
    return _wrap_lines(head, depth) + _body(loop.body, inner, depth + 1)


def _while(loop: assignments.While | loops.While, scope: Scope, depth: int) -> list[Line]:
    """The lines of a loop, with the test after its prelude if there is one."""
    if not loop.prelude:
        head = _wrap_lines(f"while {expr_text(loop.test, scope)}:", depth)
        return head + _body(loop.body, scope, depth + 1)
    inner = scope.inner()
    lines = _wrap_lines("loop:", depth)
    for statement in loop.prelude:
        lines += _statement(statement, inner, depth + 1)
    lines += _wrap_lines(f"while {expr_text(loop.test, inner)}", depth + 1)
    return lines + _body(loop.body, inner, depth + 1)


def _branch(
    word: str,
    test: Expr,
    then: Sequence[AnyStatement],
    orelse: Sequence[AnyStatement],
    scope: Scope,
    depth: int,
) -> list[Line]:
    lines = _wrap_lines(f"{word} {expr_text(test, scope)}:", depth) + _body(then, scope, depth + 1)
    match orelse:
        case ():
            return lines
        case (assignments.Branch(again, yes, no) | loops.If(again, yes, no),):
            return lines + _branch("elif", again, yes, no, scope, depth)
        case _:
            return lines + _wrap_lines("else:", depth) + _body(orelse, scope, depth + 1)


def _wrap_lines(text: str, depth: int, lead: str = "") -> list[Line]:
    """The text as lines of at most 100 columns, broken at spaces outside of quotes."""
    indent = _INDENT * depth + lead
    if len(indent) + len(text) <= _WIDTH:
        return [Line(indent + text)]
    return [
        Line(line.replace("\0", " "))
        for line in wrap(
            text if lead else _keep_quotes(text),
            max(_WIDTH, len(indent) + 40),
            initial_indent=indent,
            subsequent_indent=indent + (_INDENT * 2 if not lead else ""),
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]


def _keep_quotes(text: str) -> str:
    """The text with the spaces inside quoted strings replaced by NUL, where no line may break."""
    out, quote, escaped = "", "", False
    for character in text:
        if not quote:
            quote = character if character in "'\"" else ""
        elif not escaped and character == quote:
            quote = ""
        escaped = character == "\\" and not escaped
        out += "\0" if quote and character == " " else character
    return out
