"""The faults that a module may be given: every small change of its syntax tree that is meant here.

A mutant is one changed function (or one changed table of the module). What is not behaviour gets no
mutants: names, texts, annotations, assertions about our own bugs, errors that are raised.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutant:
    """A function or table with one fault in it."""

    function: str
    """Its name, behind that of its class; empty where a table of the module is changed."""
    tree: ast.Module
    """The changed function alone, or the changed assignment."""
    old: str
    new: str
    """The line that differs, as Python writes it."""
    lines: range
    """Lines of the source that have to be reached for the fault to matter."""
    whole: range
    """The lines of the function."""

    @property
    def diff(self) -> str:
        """Return the change as two lines of a unified diff."""
        return f"-{self.old}\n+{self.new}"


def mutants(text: str) -> list[Mutant]:
    """Return every mutant of a module's text, in the order of its lines, each once.

    >>> for made in mutants("def f(a: int) -> bool:\\n    return a < 3\\n"):
    ...     print(made.new)
    return True
    return False
    return a <= 3
    return a < 4
    return a < 2
    """
    found: dict[tuple[str, int, str], Mutant] = {}
    for name, part in _parts(ast.parse(text)):
        whole = range(part.lineno, (part.end_lineno or part.lineno) + 1)
        for change in _Walk(part).changes():
            new = _line(change.shown) if change.shown is not None else change.text
            if new == change.old:
                continue
            made = Mutant(name, _alone(part), change.old, new, change.lines, whole)
            found.setdefault((name, change.lines.start, change.old + new), made)
    return list(found.values())


def _parts(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the functions and methods of a module, and its tables of values."""
    for part in tree.body:
        if isinstance(part, Function):
            yield part.name, part
        elif isinstance(part, ast.ClassDef):
            for inner in part.body:
                if isinstance(inner, Function):
                    yield f"{part.name}.{inner.name}", inner
        elif isinstance(part, ast.Assign | ast.AnnAssign) and _is_table(part):
            yield "", part


def _is_table(part: ast.Assign | ast.AnnAssign) -> bool:
    target = part.targets[0] if isinstance(part, ast.Assign) else part.target
    return isinstance(target, ast.Name) and target.id.isupper()


def _alone(part: ast.stmt) -> ast.Module:
    """Return a copy of a function or table as a module, without what decorates it."""
    alone = copy.deepcopy(part)
    if isinstance(alone, Function):
        alone.decorator_list = []
    return ast.fix_missing_locations(ast.Module([alone], []))


def _line(node: ast.AST) -> str:
    """Return a statement as one line; of one that holds others, its head."""
    return ast.unparse(node).strip().splitlines()[0]


@dataclass(frozen=True, slots=True)
class _Change:
    """The tree as it stands is changed, until the next change is asked for."""

    old: str
    shown: ast.AST | None
    """The statement to show; None where `text` says what is there now."""
    text: str
    lines: range


Place = tuple[ast.AST, str, int | None]
"""A node's parent, the name of its field, and where in the list."""

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
CALLED = {
    "any": "all", "all": "any", "min": "max", "max": "min", "union": "intersection",
    "intersection": "union",
}  # fmt: skip
UNCHANGED = (ast.Assert, ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.arguments)
NOTHING = {
    "bool": ("True", "False"), "int": ("0",), "str": ("''",), "None": ("None",),
    "tuple": ("()",), "list": ("[]",), "dict": ("{}",), "frozenset": ("frozenset()",),
    "Iterator": ("iter(())",),
}  # fmt: skip
"""What a function that is left at once returns, by what it promises."""


class _Walk:
    """The walk over one function or table, that changes it in place and restores it."""

    def __init__(self, part: ast.stmt) -> None:
        self.part = part
        self.bound: set[str] = set()

    def changes(self) -> Iterator[_Change]:
        if isinstance(self.part, Function):
            self.bound = {argument.arg for argument in ast.walk(self.part.args)
                          if isinstance(argument, ast.arg)}  # fmt: skip
            yield from self.left_at_once(self.part)
            yield from self.block(self.part, "body", self.part)
        elif isinstance(self.part, ast.Assign | ast.AnnAssign) and self.part.value is not None:
            yield from self.node((self.part, "value", None), self.part)

    def left_at_once(self, part: Function) -> Iterator[_Change]:
        """Yield the function with a return at its start."""
        promised = ast.unparse(part.returns) if part.returns is not None else "None"
        kinds = [one.strip().split("[")[0] for one in promised.split("|")]
        makes = any(isinstance(one, ast.Yield | ast.YieldFrom) for one in ast.walk(part))
        values = ("",) if makes else tuple(v for kind in kinds for v in NOTHING.get(kind, ()))
        whole = range(part.lineno, (part.end_lineno or part.lineno) + 1)
        body = part.body
        for value in values:
            first = ast.parse(f"return {value}").body
            part.body = [*first, *body]
            yield _Change(f"def {part.name}(...):", None, f"return {value}".strip(), whole)
        part.body = body

    def block(self, owner: ast.AST, name: str, stmt: ast.AST) -> Iterator[_Change]:
        body: list[ast.stmt] = getattr(owner, name)
        for at, one in enumerate(body):
            if isinstance(one, UNCHANGED) or _is_text(one):
                continue
            yield from self.dropped(body, at)
            yield from self.inside(one, one)
            if isinstance(one, ast.Assign | ast.AnnAssign | ast.For):
                names = (n for n in ast.walk(one) if isinstance(n, ast.Name))
                self.bound |= {n.id for n in names if isinstance(n.ctx, ast.Store)}

    def dropped(self, body: list[ast.stmt], at: int) -> Iterator[_Change]:
        """Yield the list without one of its statements, where that still makes sense."""
        one = body[at]
        is_guard = isinstance(one, ast.If) and not one.orelse and _leaves(one.body)
        if isinstance(one, ast.Expr) or is_guard or isinstance(one, ast.AugAssign | ast.Continue):
            drops = True
        elif isinstance(one, ast.Assign):
            drops = all(not isinstance(t, ast.Name) or t.id in self.bound for t in one.targets)
            drops = drops and not any(isinstance(t, ast.Tuple) for t in one.targets)
        else:
            drops = False
        if drops:
            body[at] = ast.copy_location(ast.Pass(), one)
            yield _Change(_line(one), None, "pass", _head(one))
            body[at] = one

    def inside(self, node: ast.AST, stmt: ast.AST) -> Iterator[_Change]:
        """Yield the changes of what a node holds."""
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "msg", "type_comment"):
                continue
            if name in ("body", "orelse") and isinstance(value, list):
                yield from self.block(node, name, stmt)
            elif name == "cases":
                yield from self.cases(node)
            elif isinstance(value, list):
                for at, one in enumerate(value):
                    if isinstance(one, ast.AST):
                        yield from self.node((node, name, at), stmt)
            elif isinstance(value, ast.AST):
                yield from self.node((node, name, None), stmt)

    def cases(self, match: ast.AST) -> Iterator[_Change]:
        cases: list[ast.match_case] = getattr(match, "cases", [])
        for at, case in enumerate(cases):
            lines = range(case.pattern.lineno, case.body[0].lineno + 1)
            if len(cases) > 1 and at + 1 < len(cases):
                del cases[at]
                yield _Change(_line(case), None, "# no such case", lines)
                cases.insert(at, case)
            yield from self.inside(case, case)

    def node(self, place: Place, stmt: ast.AST) -> Iterator[_Change]:
        """Yield the changes of one node, then of what it holds."""
        node = _get(place)
        if isinstance(node, UNCHANGED) or getattr(node, "arg", "") == "strict":
            return
        old, lines = _line(stmt), _head(stmt)
        for new in _replacements(node, place):
            _set(place, ast.copy_location(new, node))
            yield _Change(old, stmt, "", lines)
            _set(place, node)
        yield from self.inside(node, stmt)


def _replacements(node: ast.AST, place: Place) -> Iterator[ast.AST]:
    """Yield what may stand in the place of an expression or pattern."""
    owner, field, _ = place
    tested = field == "test" and isinstance(owner, ast.If | ast.While | ast.IfExp)
    if isinstance(node, ast.expr) and (tested or field == "guard"):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node.operand
            return
        if not isinstance(node, ast.Compare):  # which is turned round below
            yield ast.UnaryOp(ast.Not(), node)
    match node:
        case ast.Compare(ops=ops):
            for at, op in enumerate(ops):
                other = COMPARED[type(op)]()
                new = copy.copy(node)
                new.ops = [*ops[:at], other, *ops[at + 1 :]]
                yield new
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            for at in range(len(values)):
                kept = values[:at] + values[at + 1 :]
                yield kept[0] if len(kept) == 1 else ast.BoolOp(op, kept)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.BinOp():
            yield from _computed(node, owner)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as number):
            yield from (ast.Constant(number + 1), ast.Constant(number - 1))
        case ast.comprehension(ifs=ifs):
            for at in range(len(ifs)):
                new_loop = copy.copy(node)
                new_loop.ifs = ifs[:at] + ifs[at + 1 :]
                yield new_loop
        case ast.Call():
            yield from _called(node)
        case ast.MatchOr(patterns=patterns):
            for at in range(len(patterns)):
                rest = patterns[:at] + patterns[at + 1 :]
                yield rest[0] if len(rest) == 1 else ast.MatchOr(rest)
        case _:
            pass


def _computed(node: ast.BinOp, owner: ast.AST) -> Iterator[ast.AST]:
    """Yield another operation, and one side alone; of types that are tried, either side alone."""
    is_tried = isinstance(owner, ast.Call) and getattr(owner.func, "id", "") == "isinstance"
    if is_tried:
        yield from (node.left, node.right)
        return
    if type(node.op) in COMPUTED:
        yield ast.BinOp(node.left, COMPUTED[type(node.op)](), node.right)
    yield node.left
    if isinstance(node.op, ast.Add | ast.BitOr | ast.BitAnd):
        yield node.right


def _called(node: ast.Call) -> Iterator[ast.AST]:
    """Yield a call of the opposite, with arguments swapped, or with one thing less replaced."""
    func, args = node.func, node.args
    name = func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")
    if name in CALLED:
        new = copy.deepcopy(func)
        setattr(new, "id" if isinstance(new, ast.Name) else "attr", CALLED[name])
        yield ast.Call(new, args, node.keywords)
    if name == "reversed":
        yield args[0]
    if name not in ("isinstance", "getattr", "cast", "Decision"):
        for at in range(len(args) - 1):
            pair = args[at : at + 2]
            if all(isinstance(one, ast.Name | ast.Attribute | ast.Subscript) for one in pair):
                swapped = [*args[:at], pair[1], pair[0], *args[at + 2 :]]
                yield ast.Call(func, swapped, node.keywords)
    if name == "replace":
        for at in range(len(node.keywords)):
            if node.keywords[at].arg != "span":
                yield ast.Call(func, args, node.keywords[:at] + node.keywords[at + 1 :])


def _get(place: Place) -> ast.AST:
    owner, field, at = place
    found = getattr(owner, field)
    return found if at is None else found[at]


def _set(place: Place, node: ast.AST) -> None:
    owner, field, at = place
    if at is None:
        setattr(owner, field, node)
    else:
        getattr(owner, field)[at] = node


def _head(node: ast.AST) -> range:
    """Return the lines of a statement; of one that holds others, those of its head."""
    if isinstance(node, ast.match_case):
        return range(node.pattern.lineno, node.body[0].lineno)
    assert isinstance(node, ast.stmt), "everything else that is asked for is a statement"
    first = node.lineno
    last = node.end_lineno or first
    inner = getattr(node, "body", None) or getattr(node, "cases", None)
    if isinstance(inner, list):
        start = inner[0].pattern if isinstance(inner[0], ast.match_case) else inner[0]
        last = max(first, start.lineno - 1)
    return range(first, last + 1)


def _is_text(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)


def _leaves(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Return | ast.Continue | ast.Break)
