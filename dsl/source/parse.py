"""Parser from Python's `ast` to the surface syntax: each kind of node is translated or refused.

Purely syntactic, one small function per kind: names, shapes and types are resolved later. Errors
are collected, so that one run reports all independent problems. No later stage sees `ast`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType

from ...base.dataclass import dataclass
from ...base.diagnostic import CdSyntaxError, Diagnostic, Label, Span
from . import surface as s
from . import unsupported
from .desugar import desugar_else
from .function_source import FunctionSource, Tree

MAX_PROBLEMS = 20
MAX_DEPTH = 200
"""The nesting of expressions and statements that later passes walk within Python's stack limit."""

_BINARY: Mapping[type[ast.operator], str] = MappingProxyType(
    {
        ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//",
        ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|",
        ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    }
)  # fmt: skip
_UNARY: Mapping[type[ast.unaryop], str] = MappingProxyType(
    {ast.UAdd: "+", ast.USub: "-", ast.Invert: "~", ast.Not: "not"}
)
_COMPARE: Mapping[type[ast.cmpop], str] = MappingProxyType(
    {
        ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
        ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
    }
)  # fmt: skip
_ERRSTATE_MODES = ("ignore", "warn")
"""Supported arguments of `np.errstate`: compiled code never warns."""
_BODIES = ("body", "orelse", "handlers", "finalbody", "cases", "decorator_list")


def parse(source: FunctionSource) -> s.Function:
    """Return the surface syntax of a function, with its docstring in `doc`.

    Raises one `CdSyntaxError` with up to 20 problems: each construct that the language does not
    admit, `=+` and `=-` (CD0104), and nesting beyond `MAX_DEPTH` (CD0103).
    """
    parser = _Parser(source)
    try:
        function = _root(parser, source.tree)
    except RecursionError:  # the caller's own stack was deep already
        parser.nested_too_deeply(parser.span(source.tree))
    if parser.problems:
        problems = sorted(parser.problems, key=_position)
        raise CdSyntaxError(*problems[:MAX_PROBLEMS])
    return function


def _root(p: _Parser, tree: Tree) -> s.Function:
    if isinstance(tree, ast.Lambda):
        params, value = _params(p, tree.args), _expression(p, tree.body)
        return s.Function(p.source.name, params, (s.Return(value, value.span),), None, p.span(tree))
    if isinstance(tree, ast.AsyncFunctionDef):
        p.refuse_node(tree)
    return _function(p, tree)


def _position(problem: Diagnostic) -> tuple[int, int, str]:
    span = problem.labels[0].span
    return span.line, span.column, problem.code


@dataclass(slots=True)
class _Parser:
    """The parser's state: the source, and the errors so far."""

    source: FunctionSource
    problems: list[Diagnostic] = field(default_factory=list)
    depth: int = 0
    pinned: Span | None = None
    """The span of the enclosing f-string where Python misreports positions inside it."""

    def span(self, node: ast.AST) -> Span:
        return self.pinned or self.source.span(node)

    def header(self, node: ast.AST) -> Span:
        """Return the span of a compound statement up to its colon."""
        span = self.span(node)
        line, column = span.line, span.column
        for inner in _header_nodes(node):
            line, column = max((line, column), self._end(inner))
        while ":" not in (text := self.source.line(line)[column:].partition("#")[0]):
            if line >= span.end_line:
                return replace(span, end_line=line, end_column=column)
            line, column = line + 1, 0
        end = column + len(text.partition(":")[0].rstrip())
        return replace(span, end_line=line, end_column=end)

    def _end(self, node: ast.AST) -> tuple[int, int]:
        span = self.span(node)
        return span.end_line, span.end_column

    def refuse(self, why: unsupported.Unsupported, at: Span) -> None:
        self.problems.append(Diagnostic(why.code, why.message, (Label(at),), helps=(why.help,)))

    def refuse_node(self, node: ast.AST) -> None:
        """Refuse a kind of node; of a compound statement the header is labelled."""
        kind = type(node).__name__
        why = unsupported.UNSUPPORTED.get(kind) or unsupported.Unsupported(
            "CD0109", f"Python's `{kind}` is not part of the language", "leave it out"
        )
        has_body = isinstance(node, ast.stmt) and any(hasattr(node, name) for name in _BODIES)
        self.refuse(why, self.header(node) if has_body else self.span(node))

    def nested_too_deeply(self, at: Span) -> None:
        if any(problem.code == "CD0103" for problem in self.problems):
            return
        why = unsupported.Unsupported(
            "CD0103",
            f"this is nested too deeply: more than {MAX_DEPTH} levels",
            "name a part of it and go on from there: `t = a + b`, then `t + c`",
        )
        self.refuse(why, at)


def _header_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes between the keyword and the colon of a compound statement."""
    for name, value in ast.iter_fields(node):
        if name in _BODIES:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from (inner for inner in ast.walk(child) if hasattr(inner, "end_lineno"))


# -- functions ----------------------------------------------------------------------------------


def _function(p: _Parser, node: ast.FunctionDef | ast.AsyncFunctionDef) -> s.Function:
    for parameter in getattr(node, "type_params", []):
        p.refuse(unsupported.UNSUPPORTED["TypeParameters"], p.span(parameter))
    doc = ast.get_docstring(node)
    body = node.body if doc is None else node.body[1:]
    return s.Function(node.name, _params(p, node.args), _block(p, body), doc, p.header(node))


def _params(p: _Parser, args: ast.arguments) -> tuple[s.Param, ...]:
    plain = [*args.posonlyargs, *args.args]
    defaults = [*[None] * (len(plain) - len(args.defaults)), *args.defaults]
    kinds = ["positional"] * len(args.posonlyargs) + ["any"] * len(args.args)
    params = [
        _param(p, arg, kind, default)
        for arg, kind, default in zip(plain, kinds, defaults, strict=True)
    ]
    if args.vararg is not None:
        params.append(_param(p, args.vararg, "*", None))
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        params.append(_param(p, arg, "keyword", default))
    if args.kwarg is not None:
        params.append(_param(p, args.kwarg, "**", None))
    return tuple(params)


def _param(p: _Parser, arg: ast.arg, kind: str, default: ast.expr | None) -> s.Param:
    value, annotation = _optional_expression(p, default), _optional_expression(p, arg.annotation)
    return s.Param(arg.arg, kind, value, annotation, p.span(arg))


# -- statements ---------------------------------------------------------------------------------


def _block(p: _Parser, body: Sequence[ast.stmt]) -> tuple[s.Statement, ...]:
    statements = []
    for node in body:
        p.depth += 1
        if p.depth > MAX_DEPTH:
            p.nested_too_deeply(p.span(node))
        else:
            statements += _statement(p, node)
        p.depth -= 1
    return tuple(statements)


def _statement(p: _Parser, node: ast.stmt) -> list[s.Statement]:
    """Return the statement, an empty list where it was refused."""
    match node:
        case ast.Assign():
            return [_assign(p, node)]
        case ast.AugAssign(target, op, value):
            target_, value_ = _expression(p, target), _expression(p, value)
            return [s.Augment(target_, _BINARY[type(op)], value_, p.span(node))]
        case ast.AnnAssign():
            return [_declare(p, node)]
        case ast.Expr(value):
            return [s.Evaluate(_expression(p, value), p.span(node))]
        case ast.Return(value):
            return [s.Return(_optional_expression(p, value), p.span(node))]
        case ast.Assert(test, message):
            return [s.Assert(_expression(p, test), _optional_expression(p, message), p.span(node))]
        case ast.Raise():
            return [_raise(p, node)]
        case ast.Break():
            return [s.Break(p.span(node))]
        case ast.Continue():
            return [s.Continue(p.span(node))]
        case ast.Pass():
            return [s.Pass(p.span(node))]
        case _:
            return _compound(p, node)


def _compound(p: _Parser, node: ast.stmt) -> list[s.Statement]:
    """Return a statement with a body, an empty list where it was refused."""
    match node:
        case ast.For(target, iterable, body, orelse):
            over = _expression(p, iterable)
            counted = s.For(_target(p, target), over, _block(p, body), p.header(node))
            return desugar_else(counted, _block(p, orelse))
        case ast.While(test, body, orelse):
            loop = s.While(_expression(p, test), _block(p, body), p.header(node))
            return desugar_else(loop, _block(p, orelse))
        case ast.If(test, then, orelse):
            test_ = _expression(p, test)
            return [s.If(test_, _block(p, then), _block(p, orelse), p.header(node))]
        case ast.With():
            return _comment(p, node)
        case ast.FunctionDef():
            if node.decorator_list:
                p.refuse(unsupported.DECORATED, p.span(node.decorator_list[0]))
            return [s.Define(_function(p, node), p.header(node))]
        case _:
            p.refuse_node(node)
            _parse_body(p, node)
            return []


def _parse_body(p: _Parser, node: ast.stmt) -> None:
    """Collect further errors in the body of a refused block, which the user may keep."""
    if isinstance(node, ast.Try | ast.AsyncFor | ast.AsyncWith | ast.With):
        _block(p, node.body)


def _assign(p: _Parser, node: ast.Assign) -> s.Statement:
    targets = tuple(_target(p, target) for target in node.targets)
    _refuse_sign(p, node.value, targets[-1])
    unpacks = all(isinstance(target, ast.Tuple | ast.List) for target in node.targets)
    value = _listed(node.value) if unpacks else node.value
    return s.Assign(targets, _expression(p, value), p.span(node))


def _declare(p: _Parser, node: ast.AnnAssign) -> s.Statement:
    target = _target(p, node.target)
    if node.value is not None:
        _refuse_sign(p, node.value, target)
    annotation = _expression(p, node.annotation)
    return s.Declare(target, annotation, _optional_expression(p, node.value), p.span(node))


def _refuse_sign(p: _Parser, value: ast.expr, target: s.Expr) -> None:
    """Refuse `t =- e` and `t =+ e` by their text, since `p =- lr * g` hides the sign in `-lr`.

    `t = -e` and `t=-e` are the sign of a value; a space on one outer side only of `=-` is not.
    """
    span = p.span(value)
    line = p.source.line(span.line)
    at = span.column
    sign = line[at : at + 1]
    if sign not in ("+", "-") or at == 0 or line[at - 1] != "=":
        return
    spaced_before = line[: at - 1][-1:].isspace() or at == 1
    spaced_after = line[at + 1 : at + 2].isspace()
    if not (spaced_before or spaced_after):
        return
    rest = replace(span, column=at + 1).text
    verb = "assigns the negated right-hand side" if sign == "-" else "assigns the right-hand side"
    plain = f"{target.span.text} = {'-' if sign == '-' else ''}{rest}"
    meant = "a negated value" if sign == "-" else "the value"
    where = replace(span, column=at - 1, end_line=span.line, end_column=at + 1)
    p.problems.append(
        Diagnostic(
            "CD0104",
            f"`={sign}` {verb}; it does not accumulate",
            (Label(where, f"Python reads `{target.span.text} = {sign}{rest}`"),),
            helps=(
                f"to accumulate, write `{target.span.text} {sign}= {rest}`",
                f"to assign {meant}, write `{plain}`",
            ),
        )
    )


def _raise(p: _Parser, node: ast.Raise) -> s.Statement:
    if node.cause is not None:
        p.refuse(unsupported.RAISE_FROM, p.span(node.cause))
    return s.Raise(_optional_expression(p, node.exc), p.span(node))


def _comment(p: _Parser, node: ast.With) -> list[s.Statement]:
    """Return `with comment("text"):`, or the body of a `with np.errstate`; others are refused."""
    match node.items:
        case [ast.withitem(ast.Call(ast.Attribute(_, "errstate"), [], choices), None)] if all(
            isinstance(c.value, ast.Constant) and c.value.value in _ERRSTATE_MODES for c in choices
        ):
            return list(_block(p, node.body))
        case [ast.withitem(ast.Call(function, [text], []), None)] if _is_comment(function):
            return [s.Comment(_expression(p, text), _block(p, node.body), p.header(node))]
        case _:
            p.refuse(unsupported.WITH, p.header(node))
            _parse_body(p, node)
            return []


def _is_comment(function: ast.expr) -> bool:
    match function:
        case ast.Name("comment") | ast.Attribute(_, "comment"):
            return True
        case _:
            return False


def _target(p: _Parser, node: ast.expr) -> s.Expr:
    """Return the target of an assignment; starred elements are refused."""
    for inner in ast.walk(node) if isinstance(node, ast.Tuple | ast.List) else ():
        if isinstance(inner, ast.Starred) and isinstance(inner.ctx, ast.Store):
            p.refuse(unsupported.STARRED_TARGET, p.span(inner))
    return _expression(p, node)


# -- expressions --------------------------------------------------------------------------------


def _optional_expression(p: _Parser, node: ast.expr | None) -> s.Expr | None:
    return None if node is None else _expression(p, node)


def _expressions(p: _Parser, nodes: Sequence[ast.expr]) -> tuple[s.Expr, ...]:
    return tuple(_expression(p, node) for node in nodes)


def _expression(p: _Parser, node: ast.expr) -> s.Expr:
    """Return the expression, a literal `None` where it was refused."""
    p.depth += 1
    try:
        if p.depth > MAX_DEPTH:
            p.nested_too_deeply(p.span(node))
        else:
            return _leaf(p, node) or _operation(p, node) or _structure(p, node) or _refuse(p, node)
    finally:
        p.depth -= 1
    return s.Literal(None, p.span(node))


def _refuse(p: _Parser, node: ast.expr) -> s.Expr:
    p.refuse_node(node)
    return s.Literal(None, p.span(node))


def _leaf(p: _Parser, node: ast.expr) -> s.Expr | None:
    match node:
        case ast.Name(name):
            return s.Name(name, p.span(node))
        case ast.Constant(value):
            if isinstance(value, bytes):
                p.refuse(unsupported.BYTES, p.span(node))
            return s.Literal(value, p.span(node))
        case ast.Attribute(value, name):
            return s.Attribute(_expression(p, value), name, p.span(node))
        case ast.Starred(value):
            return s.Starred(_expression(p, value), p.span(node))
        case _:
            return None


def _operation(p: _Parser, node: ast.expr) -> s.Expr | None:
    match node:
        case ast.UnaryOp(op, operand):
            return s.Unary(_UNARY[type(op)], _expression(p, operand), p.span(node))
        case ast.BinOp(left, op, right):
            left_, right_ = _expression(p, left), _expression(p, right)
            return s.Binary(_BINARY[type(op)], left_, right_, p.span(node))
        case ast.Compare(left, ops, right):
            spelled = tuple(_COMPARE[type(op)] for op in ops)
            return s.Compare(_expressions(p, [left, *right]), spelled, p.span(node))
        case ast.BoolOp(op, values):
            word = "and" if isinstance(op, ast.And) else "or"
            return s.Logical(word, _expressions(p, values), p.span(node))
        case ast.IfExp(test, yes, no):
            parts = _expressions(p, [test, yes, no])
            return s.Conditional(parts[0], parts[1], parts[2], p.span(node))
        case _:
            return None


def _structure(p: _Parser, node: ast.expr) -> s.Expr | None:
    match node:
        case ast.Subscript(value, index):
            items = index.elts if isinstance(index, ast.Tuple) else [index]
            comma = isinstance(index, ast.Tuple) and len(items) == 1
            return s.Subscript(_expression(p, value), _expressions(p, items), p.span(node), comma)
        case ast.Slice(lower, upper, step):
            parts = [_optional_expression(p, part) for part in (lower, upper, step)]
            return s.Slice(parts[0], parts[1], parts[2], p.span(node))
        case ast.Call():
            return _call(p, node)
        case ast.Tuple(items) | ast.List(items):
            kind = "tuple" if isinstance(node, ast.Tuple) else "list"
            return s.Sequence(_expressions(p, items), kind, p.span(node))
        case ast.ListComp(element, loops):
            return _comprehension(p, node, element, loops)
        case ast.Lambda(args, body):
            params = _params(p, args)
            return s.Lambda(params, _expression(p, body), p.span(node))
        case ast.JoinedStr():
            return _format(p, node)
        case _:
            return None


def _call(p: _Parser, node: ast.Call) -> s.Expr:
    function = _expression(p, node.func)
    keywords = tuple(_keyword(p, keyword) for keyword in node.keywords)
    match node.args:
        case [ast.GeneratorExp(element, loops) as only] if not keywords:
            args: tuple[s.Expr, ...] = (_comprehension(p, only, element, loops),)
        case _:
            args = _expressions(p, [_starred_list(arg) for arg in node.args])
    return s.Call(function, args, keywords, p.span(node))


def _starred_list(node: ast.expr) -> ast.expr:
    """Return an argument `*(a for ...)` as `*[a for ...]`: all of its items are taken at once."""
    if not isinstance(node, ast.Starred):
        return node
    return ast.copy_location(ast.Starred(_listed(node.value), node.ctx), node)


def _listed(node: ast.expr) -> ast.expr:
    """Return a generator whose items are all taken at once as a list, others unchanged."""
    if not isinstance(node, ast.GeneratorExp):
        return node
    return ast.copy_location(ast.ListComp(node.elt, node.generators), node)


def _keyword(p: _Parser, node: ast.keyword) -> s.Keyword:
    if node.arg is None:
        p.refuse(unsupported.KEYWORDS, p.span(node))
    return s.Keyword(node.arg, _expression(p, node.value), p.span(node))


def _comprehension(
    p: _Parser, node: ast.expr, element: ast.expr, loops: list[ast.comprehension]
) -> s.Expr:
    """Return a comprehension; several loops become nested ones with starred elements."""
    loop, span = loops[0], p.span(node)
    if loop.is_async:
        p.refuse(unsupported.UNSUPPORTED["AsyncFor"], span)
    target, iterable = _target(p, loop.target), _expression(p, loop.iter)
    tests = _expressions(p, loop.ifs)
    if len(loops) > 1:
        item: s.Expr = s.Starred(_comprehension(p, node, element, loops[1:]), span)
    else:
        item = _expression(p, element)
    return s.Comprehension(item, target, iterable, tests, span, isinstance(node, ast.GeneratorExp))


# -- f-strings ----------------------------------------------------------------------------------

_CONVERSIONS = {ord("r"): repr, ord("s"): str, ord("a"): ascii}


def _format(p: _Parser, node: ast.JoinedStr) -> s.Expr:
    outer, whole = p.pinned, p.span(node)
    parts: list[str | tuple[s.Expr, str]] = []
    for part in node.values:
        match part:
            case ast.FormattedValue(value, conversion, spec):
                if not _has_position(p, value):
                    p.pinned = whole
                read = _expression(p, value)
                if conversion != -1:
                    to = s.Literal(_CONVERSIONS[conversion], p.span(value))
                    read = s.Call(to, (read,), (), p.span(value))
                parts.append((read, _format_spec(p, spec, whole)))
                p.pinned = outer
            case ast.Constant(builtins.str() as text):
                parts.append(text)
            case _:
                p.refuse_node(part)
    return s.Format(tuple(parts), whole)


def _has_position(p: _Parser, node: ast.expr) -> bool:
    """Return whether the position of an f-string's value is correct (not always before 3.12)."""
    try:
        read = ast.parse(p.source.span(node).text, mode="eval").body
    except (SyntaxError, ValueError):
        return False
    return ast.dump(read) == ast.dump(node)


def _format_spec(p: _Parser, spec: ast.expr | None, whole: Span) -> str:
    match spec:
        case None:
            return ""
        case ast.JoinedStr([]):
            return ""
        case ast.JoinedStr([ast.Constant(builtins.str() as text)]):
            return text
        case _:
            p.refuse(unsupported.DYNAMIC_FORMAT, whole)
            return ""
