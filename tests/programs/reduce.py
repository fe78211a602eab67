"""A finding made small: statements deleted, expressions replaced by their parts, sizes lowered.

Works on the text alone, so whatever is valid comes out of trying; what is not is no finding.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

from .model import ArgSpec, Program

Fails = Callable[[Program], bool]
_BUDGET = 400
"""How many programs are tried at most."""
_MOST = 2000
"""So many are thought of for one step."""


def reduced(program: Program, fails: Fails, budget: int = _BUDGET) -> Program:
    """Return the smallest program found for which `fails` still holds."""
    skip = 0
    while budget > 0:
        for number, candidate in _from(program, skip):
            budget -= 1
            if budget <= 0:
                return program
            if candidate != program:
                if fails(candidate):
                    program, skip = candidate, number
                    break
        else:
            return program
    return program


def _from(program: Program, first: int) -> Iterator[tuple[int, Program]]:
    """Yield what may be tried, from a number on: what failed before it mostly does again."""
    yield from itertools.islice(enumerate(_candidates(program)), first, _MOST)
    yield from itertools.islice(enumerate(_candidates(program)), min(first, _MOST))


def _candidates(program: Program) -> Iterator[Program]:
    if "np.empty(" in program.text:  # what fills it is deleted later, and nobody knows its elements
        yield replace(program, text=program.text.replace("np.empty(", "np.zeros("))
    yield from _with_fewer_calls(program)
    yield from _without_arguments(program)
    for text in _texts(program.text):
        yield replace(program, text=text)
    yield from _with_smaller_arguments(program)


def _texts(text: str) -> Iterator[str]:
    """Yield smaller texts: the largest steps first."""
    tree = ast.parse(text)
    yield from _without_statements(tree)
    yield from _with_smaller_expressions(tree)


def _bodies(tree: ast.AST) -> list[tuple[ast.AST, str]]:
    return [
        (node, name) for node in ast.walk(tree) for name in ("body", "orelse")
        if isinstance(getattr(node, name, None), list) and getattr(node, name)
        and not isinstance(node, ast.Module)
    ]  # fmt: skip


def _without_statements(tree: ast.Module) -> Iterator[str]:
    bodies = _bodies(tree)
    for number, (node, name) in enumerate(bodies):
        body = getattr(node, name)
        spans = [(0, len(body))] if len(body) > 2 else []
        if len(body) > 4:
            half = len(body) // 2
            spans += [(0, half), (half, len(body))]
        spans += [(n, n + 1) for n in reversed(range(len(body)))]
        for low, high in spans:
            made = copy.deepcopy(tree)
            parent, field = _bodies(made)[number]
            kept = getattr(parent, field)
            removed = kept[low:high]
            rest = kept[:low] + kept[high:]
            if len(removed) == 1 and not isinstance(removed[0], ast.FunctionDef):
                inner = getattr(removed[0], "body", None)
                if isinstance(inner, list):  # the body in place of the loop
                    setattr(parent, field, kept[:low] + inner + kept[high:])
                    yield _written(made)
            if not rest and field == "body":
                rest = [ast.Pass()]
                if isinstance(removed[0], ast.Pass):
                    continue
            setattr(parent, field, rest)
            yield _written(made)


def _expressions(tree: ast.AST) -> list[tuple[ast.AST, str, int | None, ast.expr]]:
    """Return every expression that may be replaced: its parent, the field, and where in a list."""
    found: list[tuple[ast.AST, str, int | None, ast.expr]] = []
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            is_kept = name in ("func", "ctx", "targets") or isinstance(node, ast.arguments)
            if is_kept or (name == "target" and isinstance(node, ast.For)):
                continue
            if isinstance(value, ast.expr):
                found.append((node, name, None, value))
            elif isinstance(value, list):
                parts = [(n, v) for n, v in enumerate(value) if isinstance(v, ast.expr)]
                found += [(node, name, n, v) for n, v in parts]
    return found


def _with_smaller_expressions(tree: ast.Module) -> Iterator[str]:
    for number, (_, _, _, expr) in enumerate(_expressions(tree)):
        for smaller in _smaller(expr):
            made = copy.deepcopy(tree)
            parent, name, position, _ = _expressions(made)[number]
            if position is None:
                setattr(parent, name, copy.deepcopy(smaller))
            elif smaller is None:
                getattr(parent, name).pop(position)
            else:
                getattr(parent, name)[position] = copy.deepcopy(smaller)
            yield _written(made)
    for number, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.Tuple) and len(node.elts) > 1:
            for n in range(len(node.elts)):
                made = copy.deepcopy(tree)
                other = list(ast.walk(made))[number]
                assert isinstance(other, ast.Tuple)
                del other.elts[n]
                yield _written(made)


def _smaller(expr: ast.expr) -> Iterator[ast.expr]:
    """Yield simpler expressions in the place of one."""
    if isinstance(expr, ast.Constant):
        if type(expr.value) in (int, float) and expr.value not in (0, 1):
            yield ast.Constant(1)
        return
    if isinstance(expr, ast.Name | ast.Tuple):
        return
    if isinstance(expr, ast.Slice):
        if expr.lower or expr.upper or expr.step:
            yield ast.Slice()
        if expr.step:
            yield ast.Slice(expr.lower, expr.upper)
        return
    for part in ast.iter_child_nodes(expr):
        if isinstance(part, ast.expr) and not isinstance(part, ast.Slice | ast.Tuple):
            if isinstance(expr, ast.Call) and part is expr.func:
                if not isinstance(part, ast.Attribute):
                    continue
                part = part.value  # what a method is called on
            if not (isinstance(part, ast.Name) and part.id == "np"):
                yield part
    if not isinstance(expr, ast.UnaryOp):
        yield ast.Constant(1)


def _written(tree: ast.Module) -> str:
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _without_arguments(program: Program) -> Iterator[Program]:
    nodes = list(ast.walk(ast.parse(program.text)))
    used = {n.id for n in nodes if isinstance(n, ast.Name)}
    used |= {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    bases = {spec.view[0] for spec in program.args if spec.view}
    for spec in program.args:
        if spec.name not in used | bases:
            args, *calls = (
                tuple(s for s in one if s.name != spec.name)
                for one in (program.args, *program.calls)
            )
            text = _without_parameter(program.text, spec.name)
            yield replace(
                program, args=args, calls=tuple(calls), text=text,
                captured=program.captured - {spec.name}, owned=program.owned - {spec.name},
            )  # fmt: skip


def _with_fewer_calls(program: Program) -> Iterator[Program]:
    """Yield the program with fewer processes, fewer calls in one, or a simpler call."""
    orders = program.orders
    for n in reversed(range(len(orders) if len(orders) > 1 else 0)):
        yield replace(program, orders=(*orders[:n], *orders[n + 1 :]))
    for n, order in enumerate(orders):
        half = len(order) // 2
        spans = [(0, half), (half, len(order))] if half > 1 else []
        for low, high in (*spans, *((at, at + 1) for at in reversed(range(len(order))))):
            less = (*order[:low], *order[high:])
            yield replace(program, orders=(*orders[:n], less, *orders[n + 1 :]))
    used = sorted({at for order in orders for at in order})
    if used and len(used) < len(program.calls):
        calls = tuple(program.calls[at] for at in used)
        again = tuple(tuple(map(used.index, order)) for order in orders)
        yield replace(program, calls=calls, orders=again, args=calls[0])
    for n, call in enumerate(program.calls):
        for args in _with_smaller_specs(call):
            yield replace(program, calls=(*program.calls[:n], args, *program.calls[n + 1 :]))
    for name in program.captured:
        function = ast.parse(program.text)
        assert isinstance(function.body[0], ast.FunctionDef)
        order = [spec.name for spec in program.args if spec.name not in program.captured - {name}]
        function.body[0].args.args = [ast.arg(one) for one in order]
        yield replace(program, text=_written(function), captured=program.captured - {name})


def _with_smaller_arguments(program: Program) -> Iterator[Program]:
    if program.calls:
        return
    for args in _with_smaller_specs(program.args):
        yield replace(program, args=args)
    sizes = sorted({e for spec in program.args for e in spec.shape if e > 1})
    for size in sizes:
        for less in _fewer(size):
            args = tuple(
                replace(s, shape=tuple(less if e == size else e for e in s.shape))
                for s in program.args
            )
            yield replace(program, args=args)
            yield replace(program, args=args, text=_with_size(program.text, size, less))


def _with_smaller_specs(args: tuple[ArgSpec, ...]) -> Iterator[tuple[ArgSpec, ...]]:
    for n, spec in enumerate(args):
        for smaller in _smaller_spec(spec):
            yield (*args[:n], smaller, *args[n + 1 :])


def _fewer(size: int) -> Iterator[int]:
    """Yield smaller sizes to try: all of a few, of many the small ones and fractions."""
    yield from range(1, min(size, 18))
    yield from sorted({size // 4, size // 2, size * 3 // 4, size - 1} - set(range(18)))


def _with_size(text: str, size: int, less: int) -> str:
    """Return the text with another number in the place of a size."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value == size:
            node.value = less
    return _written(tree)


def _smaller_spec(spec: ArgSpec) -> Iterator[ArgSpec]:
    if spec.view is not None:
        yield replace(spec, view=None)
        return
    if spec.layout != "C":
        yield replace(spec, layout="C")
    if spec.is_array and spec.dtype not in ("float64", "int64", "bool"):
        yield replace(spec, dtype="float64")
        yield replace(spec, dtype="int64")
    if spec.seed > 3:
        for seed in (1, 2, 3):
            yield replace(spec, seed=seed)
    if spec.kind == "wild":
        yield replace(spec, kind="exact")
    for axis, extent in enumerate(spec.shape):
        if extent > 1:
            for less in (1, 2, extent - 1):
                if less < extent:
                    shape = (*spec.shape[:axis], less, *spec.shape[axis + 1 :])
                    yield replace(spec, shape=shape)


def _without_parameter(text: str, name: str) -> str:
    tree = ast.parse(text)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.args.args = [a for a in function.args.args if a.arg != name]
    return _written(tree)
