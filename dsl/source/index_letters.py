"""Names that are index letters for good, whatever a loop around the function binds later.

    fixed(function, scope)        names that are no numbers when the function is decorated
    assigned(names, texts, line)  those that the module's own text assigns, and not only in a loop
    subscripts(surface)           names that stand alone in a subscript

A name of the first and the third kind, and not of the second, is an index letter. One that the
text assigns plainly is looked up at each call: a constant is never taken for a letter in silence.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

from ...base.lazy_import import lazy_modules
from .definition_lines import COMMAND
from .function_source import MISSING, Scope
from .idx import Letter, is_letter_name

if TYPE_CHECKING:
    from . import definition_blocks
    from . import surface as s
else:  # what decorating a function does not need
    definition_blocks, s = lazy_modules(__package__, ".definition_blocks", ".surface")

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
_ASSIGNED = (
    r"(?<![\w.]){0}\s*(?:[-+*/%@&|^:]|//|\*\*|<<|>>)?=(?!=)"  # `i = 3`, `(i := 3)`, `i += 1`
    r"|(?<![\w.]){0}\s*[,):][^\n=\]]*=(?!=)"  # `i, j = 2, 3`, `i: int = 3`
    r"|\b(?:def|class|as)\s+{0}\b|\b(?:import|global|nonlocal|case)\b[^\n]*\b{0}\b"
)
"""What a text has wherever it assigns a name, and sometimes where it does not."""


def fixed(function: FunctionType, scope: Scope) -> dict[str, object]:
    """Return the names in a function that are index letters, or nothing, around it now."""
    names = {
        name
        for code in _codes(function.__code__)
        for name in (*code.co_names, *code.co_freevars)
    }  # fmt: skip
    found = ((name, scope.lookup(name)) for name in sorted(names))
    return {
        name: value
        for name, value in found
        if isinstance(value, Letter) or (value is MISSING and is_letter_name(name))
    }


def texts_around(function: FunctionType, lines: Sequence[str]) -> list[list[str]] | None:
    """Return the lines of all that a module runs, as far as it was run; None where they are gone.

    Those of the function are given: of a notebook there are others beside them.
    """
    cells = function.__globals__.get("In")
    if isinstance(cells, list) and "__file__" not in function.__globals__:
        return [list(lines), *([f"{line}\n" for line in str(cell).split("\n")] for cell in cells)]
    name = function.__code__.co_filename
    is_whole = not name.startswith("<") or name == COMMAND  # `<stdin>`, and entries of a prompt
    return [list(lines)] if is_whole and lines else None


def assigned(roles: Mapping[str, object], texts: Sequence[list[str]], line: int) -> frozenset[str]:
    """Return the names that the texts of a module assign, by more than loops and `with`.

    The texts count at their top and, the first, in functions around the definition at a line.
    """
    found = set[str]()
    for at, lines in enumerate(texts):
        text = "".join(lines)
        maybe = {name for name in roles if re.search(_ASSIGNED.format(re.escape(name)), text)}
        if maybe - found:
            found |= maybe & _bound(_tree(text), line if at == 0 else 0, roles)
    return frozenset(found)


def subscripts(node: object) -> frozenset[str]:
    """Return the names that stand alone in a subscript somewhere in a function."""
    return frozenset(_subscripts(node))


def _subscripts(node: object) -> Iterator[str]:
    if isinstance(node, s.Subscript):
        yield from (item.id for item in node.items if isinstance(item, s.Name))
    if isinstance(node, tuple):
        for part in node:
            yield from _subscripts(part)
    else:
        for name in getattr(node, "__dataclass_fields__", ()):
            if name != "span":
                yield from _subscripts(getattr(node, name))


@functools.lru_cache(maxsize=1)
def _tree(text: str) -> ast.Module:
    """Return what Python reads of a text: the last one's, since a module has many functions."""
    return definition_blocks.parse_file([text])


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _bound(tree: ast.Module, line: int, roles: Mapping[str, object]) -> set[str]:
    """Return the names that a module binds, and functions around a line, but for loops and `with`.

    A name that is declared `global` somewhere is taken for one that is assigned there.
    """
    around: list[ast.AST] = [tree]
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, _SCOPES[:2]) and node.lineno < line <= (node.end_lineno or 0):
            around.append(node)
        if isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
    for scope in around:
        for part in ast.iter_child_nodes(scope):
            found.update(_bindings(part, roles))
    return found


def _bindings(node: ast.AST, roles: Mapping[str, object]) -> Iterator[str]:
    """Yield the names that a statement binds plainly in its own scope."""
    skipped: list[ast.AST] = []
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            for alias in names:
                name = alias.asname or alias.name
                if not isinstance(roles.get(name), Letter):
                    yield name
        case ast.withitem(optional_vars=ast.AST() as target):
            skipped.append(target)
    if isinstance(node, _LOOPS):
        skipped.append(node.target)
    if isinstance(node, _SCOPES):
        return
    for part in ast.iter_child_nodes(node):
        if part not in skipped:
            yield from _bindings(part, roles)
