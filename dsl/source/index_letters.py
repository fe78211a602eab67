"""Names fixed as index variables at decoration, whatever enclosing code binds to them later.

    fixed(function, scope)        names bound to no number when the function is decorated
    assigned(names, texts, line)  names that the text of the module assigns, other than in loops
    subscripts(surface)           names that are whole subscripts

A name of the first and third kind, but not of the second, is an index variable. A name that the
text assigns is looked up at each call: a constant is never silently taken for an index variable.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

from ...base.lazy_import import lazy_modules
from .definition_lines import COMMAND_FILE
from .function_source import MISSING, Scope
from .idx import Letter, is_letter_name

if TYPE_CHECKING:
    from . import definition_blocks
    from . import surface as s
else:  # not needed to decorate a function
    definition_blocks, s = lazy_modules(__package__, ".definition_blocks", ".surface")

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
_ASSIGNMENT = (
    r"(?<![\w.]){0}\s*(?:[-+*/%@&|^:]|//|\*\*|<<|>>)?=(?!=)"  # `i = 3`, `(i := 3)`, `i += 1`
    r"|(?<![\w.]){0}\s*[,):][^\n=\]]*=(?!=)"  # `i, j = 2, 3`, `i: int = 3`
    r"|\b(?:def|class|as)\s+{0}\b|\b(?:import|global|nonlocal|case)\b[^\n]*\b{0}\b"
)
"""A necessary, not sufficient, condition for a text to assign a name."""


def fixed_at_decoration(function: FunctionType, scope: Scope) -> dict[str, object]:
    """Return the names in a function that are bound to index letters or unbound now."""
    names = {
        name
        for code in _nested_code(function.__code__)
        for name in (*code.co_names, *code.co_freevars)
    }  # fmt: skip
    bindings = ((name, scope.lookup(name)) for name in sorted(names))
    return {
        name: value
        for name, value in bindings
        if isinstance(value, Letter) or (value is MISSING and is_letter_name(name))
    }


def module_texts(function: FunctionType, lines: Sequence[str]) -> list[list[str]] | None:
    """Return the lines of each text that a module has run; None where they are not available.

    `lines` are those of the function's text; a notebook has other cells.
    """
    cells = function.__globals__.get("In")
    if isinstance(cells, list) and "__file__" not in function.__globals__:
        return [list(lines), *([f"{line}\n" for line in str(cell).split("\n")] for cell in cells)]
    name = function.__code__.co_filename
    is_whole = (
        not name.startswith("<") or name == COMMAND_FILE
    )  # `<stdin>`, and entries of a prompt
    return [list(lines)] if is_whole and lines else None


def assigned_names(
    roles: Mapping[str, object], texts: Sequence[list[str]], line: int
) -> frozenset[str]:
    """Return the names that the texts of a module assign, other than by loops and `with`.

    Only the top level of a text counts; in the first one also functions that enclose `line`.
    """
    result = set[str]()
    for at, lines in enumerate(texts):
        text = "".join(lines)
        candidates = {
            name for name in roles if re.search(_ASSIGNMENT.format(re.escape(name)), text)
        }
        if candidates - result:
            result |= candidates & _bound_names(_parse_text(text), line if at == 0 else 0, roles)
    return frozenset(result)


def subscript_names(node: object) -> frozenset[str]:
    """Return the names that are a whole subscript somewhere in a function."""
    return frozenset(_subscript_names(node))


def _subscript_names(node: object) -> Iterator[str]:
    if isinstance(node, s.Subscript):
        yield from (item.id for item in node.items if isinstance(item, s.Name))
    if isinstance(node, tuple):
        for part in node:
            yield from _subscript_names(part)
    else:
        for name in getattr(node, "__dataclass_fields__", ()):
            if name != "span":
                yield from _subscript_names(getattr(node, name))


@functools.lru_cache(maxsize=1)
def _parse_text(text: str) -> ast.Module:
    """Parse a text; the last one is cached, since a module has many functions."""
    return definition_blocks.parse_file([text])


def _nested_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested_code(constant)


def _bound_names(tree: ast.Module, line: int, roles: Mapping[str, object]) -> set[str]:
    """Return the names that a module and functions enclosing a line bind, except by loops and
    `with`.

    A name that is declared `global` or `nonlocal` somewhere counts as assigned.
    """
    scopes: list[ast.AST] = [tree]
    result = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, _SCOPES[:2]) and node.lineno < line <= (node.end_lineno or 0):
            scopes.append(node)
        if isinstance(node, ast.Global | ast.Nonlocal):
            result.update(node.names)
    for scope in scopes:
        for part in ast.iter_child_nodes(scope):
            result.update(_binding_names(part, roles))
    return result


def _binding_names(node: ast.AST, roles: Mapping[str, object]) -> Iterator[str]:
    """Yield the names that a statement binds in its scope, except by loops and `with`."""
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
            yield from _binding_names(part, roles)
