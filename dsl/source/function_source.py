"""Source text of a function, and the scope in which its captured names are resolved.

`read_source` locates the text as the user wrote it in the lines of its file. Byte code is never
interpreted (import hooks rewrite it): it only identifies a lambda on its line and reveals a file
that was edited after its import. The text is stored, since `linecache` may drop it. `Scope` looks
captured names up at every call: no binding is frozen.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from types import CellType, CodeType, FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ...base.dataclass import dataclass
from ...base.diagnostic import (
    CdError,
    CdMemoryError,
    CdSyntaxError,
    CdTypeError,
    Diagnostic,
    Label,
    Source,
    Span,
)
from ...base.lazy_import import LazyModule
from .definition_lines import COMMAND_FILE, lines_of, missing_text_error
from .staleness import enclosing_class, is_stale

if TYPE_CHECKING:
    from . import definition_blocks, name_mangling
else:
    definition_blocks, name_mangling = (
        LazyModule(".definition_blocks", __package__),
        LazyModule(".name_mangling", __package__),
    )

T = TypeVar("T")
_BYTES_PER_CHAR = 400
"""The least number of bytes that Python allocates for the tree of a character of text."""
Tree = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """The source of a function. Line numbers of `tree` are those of `source.name`."""

    name: str
    tree: Tree = field(repr=False, compare=False)
    source: Source
    """The function's own lines, from its first decorator to its end."""
    lines: tuple[str, ...] = field(repr=False, compare=False)

    def span(self, node: ast.AST) -> Span:
        """Return the span of `node`, columns in characters."""
        return _span(node, self.source, self.line)

    def line(self, number: int) -> str:
        """Return one line by its absolute number."""
        at = number - self.source.first_line
        return self.lines[at] if 0 <= at < len(self.lines) else ""


def span_of(node: ast.AST, source: Source) -> Span:
    """Return the span of `node` in `source`, columns in characters."""
    return _span(node, source, source.line)


def _span(node: ast.AST, source: Source, line_of: Callable[[int], str]) -> Span:
    positioned: ast.expr = node  # type: ignore[assignment]  # all nodes with a position have these
    line, end = positioned.lineno, positioned.end_lineno or positioned.lineno
    first = _char_column(line_of(line), positioned.col_offset)
    return Span(
        source, line, first, end, _char_column(line_of(end), positioned.end_col_offset or 0)
    )


def _char_column(line: str, offset: int) -> int:
    """Return the character column of a UTF-8 byte offset, which is what `ast` gives."""
    return offset if line.isascii() else len(line.encode()[:offset].decode(errors="replace"))


# -- locating the text --------------------------------------------------------------------------


def unwrap_function(function: object) -> FunctionType:
    """Return the Python function underlying a method, class method, cache or `@cd` function.

    The wrapper that another decorator returns is a function itself. Raises `CdTypeError` (CD0105)
    for anything that was not written with `def` or `lambda`.
    """
    current = function
    while not isinstance(current, FunctionType):
        # a cache, or a `@cd` function, which has a `surface`
        is_same = type(current) is type(functools.cache(len)) or hasattr(current, "surface")
        current = getattr(current, "__wrapped__" if is_same else "__func__", None)
        if current is None:
            raise _not_a_function(function)
    return current


class FunctionSnapshot(NamedTuple):
    """A snapshot of the replaceable parts of a Python function: its code and default values."""

    function: Any
    code: CodeType
    defaults: tuple[object, ...] | None
    named: Mapping[str, object]
    """The default values of keyword-only parameters."""

    @classmethod
    def of(cls, function: FunctionType) -> FunctionSnapshot:
        """Return the snapshot of a function now."""
        named = dict(function.__kwdefaults__ or {})
        return cls(function, function.__code__, function.__defaults__, named)

    def are_current(self) -> bool:
        """Whether the function still has this code and these default values."""
        function, now = self.function, self.function.__kwdefaults__ or {}
        return (
            function.__code__ is self.code
            and function.__defaults__ is self.defaults
            and now.keys() == self.named.keys()
            and all(now[name] is value for name, value in self.named.items())
        )


def read_source(function: Callable[..., object], lines: list[str] | None = None) -> FunctionSource:
    """Return the source text and tree of `function`; `lines` are those of its file.

    Raises `CdSyntaxError` where there is no text (CD0101), where the text is stale (CD0102) or
    nested too deeply (CD0103); `CdTypeError` (CD0105) where `function` is no Python function.
    """
    plain = unwrap_function(function)
    code, lines = plain.__code__, lines or lines_of(plain)
    if not lines:
        raise missing_text_error(code)
    source = _parse_safely(lambda: _locate_current(plain, lines), code.co_name, lines)
    if source is None:
        raise missing_text_error(code) if code.co_filename == COMMAND_FILE else _stale(code)
    if enclosing_class(plain.__qualname__):
        source = replace(source, tree=name_mangling.mangle_names(source.tree, plain.__qualname__))
    return source


def _locate_current(plain: FunctionType, lines: list[str]) -> FunctionSource | None:
    """Return the definition of a function; None if it is gone from the lines or was edited."""
    source = _locate(plain.__code__, lines)
    return None if source is None or is_stale(plain, source.tree) else source


def _parse_safely(read: Callable[[], T], name: str, lines: Sequence[str]) -> T:
    """Return the result of `read`. Raises CdSyntaxError CD0103, CdMemoryError CD0705.

    Python's parser raises MemoryError also where a text exceeds its nesting limit: repeatedly, and
    while there is memory for a tree.
    """
    try:
        with contextlib.suppress(MemoryError):
            return read()
        return read()
    except RecursionError:
        raise _too_deep(name) from None
    except MemoryError:
        pass
    try:
        bytearray(_BYTES_PER_CHAR * sum(map(len, lines)))
    except MemoryError:
        raise out_of_memory_error(name) from None
    raise _too_deep(name)


def _locate(code: CodeType, lines: list[str]) -> FunctionSource | None:
    """Return the definition that `code` was compiled from; None if it is gone from the lines."""
    if code.co_name == "<lambda>":
        return _locate_lambda(code, lines)
    return _locate_block(code, lines) or _locate_def(code, lines)


def _locate_block(code: CodeType, lines: list[str]) -> FunctionSource | None:
    """Parse only the lines of the definition: cheap, and sufficient for nearly all functions."""
    for tree in definition_blocks.parse_candidates(lines, code.co_firstlineno):
        if len(tree) == 1 and _is_definition(tree[0], code):
            return _function_source(code, tree[0], lines)
    return None


def _locate_def(code: CodeType, lines: list[str]) -> FunctionSource | None:
    """Parse the whole file: for decorators whose extent only the parser determines."""
    for node in ast.walk(definition_blocks.parse_file(lines)):
        if _is_definition(node, code):
            return _function_source(code, node, lines)
    return None


def _is_definition(node: ast.AST, code: CodeType) -> bool:
    return (
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name == code.co_name
        and _first_line(node) == code.co_firstlineno
    )


def _first_line(node: Tree) -> int:
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _locate_lambda(code: CodeType, lines: list[str]) -> FunctionSource | None:
    """Return the innermost lambda on the line whose body contains all positions of the code.

    Without column positions (`-X no_debug_ranges`) parameter names alone decide, then the order.
    """
    candidates = [
        node
        for node in ast.walk(definition_blocks.parse_file(lines))
        if isinstance(node, ast.Lambda)
        and node.lineno == code.co_firstlineno
        and _parameter_names(node.args) == _argument_names(code)
    ]
    positions = _code_positions(code)
    containing = [
        node for node in candidates if all(_contains(node.body, position) for position in positions)
    ]
    if not containing:
        return None
    innermost = (
        min(containing, key=lambda node: len(ast.unparse(node))) if positions else containing[0]
    )
    return _function_source(code, innermost, lines)


def _function_source(code: CodeType, node: ast.AST, lines: list[str]) -> FunctionSource:
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    first, last = _first_line(node), node.end_lineno or node.lineno
    text = "".join(lines[first - 1 : last]).rstrip("\n")
    return _as_source(node, Source(_label(code.co_filename), first, text))


def _as_source(node: Tree, source: Source) -> FunctionSource:
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    return FunctionSource(name, node, source, tuple(source.text.split("\n")))


def _label(filename: str) -> str:
    """Return the displayed file name: `<cell 3>` for a notebook cell, otherwise unchanged."""
    cell = re.fullmatch(r"<ipython-input-(\d+)-\w+>", filename)
    number = cell[1] if cell else _cell_number(filename)
    return f"<cell {number}>" if number else filename


def _cell_number(filename: str) -> str:
    """Return the number of the notebook cell that a temporary file name stands for, or ""."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    code_name = getattr(getattr(shell, "compile", None), "format_code_name", None)
    if code_name is None:
        return ""
    kind, name = code_name(filename) or ("", "")  # `Cell`, `In[3]`
    prompt = re.fullmatch(r"In\s*\[(\d+)\]", name)
    return prompt[1] if kind == "Cell" and prompt else ""


def _parameter_names(args: ast.arguments) -> tuple[str, ...]:
    rest = [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return tuple(arg.arg for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs, *rest])


def _argument_names(code: CodeType) -> tuple[str, ...]:
    args, varargs, varkw = inspect.getargs(code)
    return (*args, *(name for name in (varargs, varkw) if name is not None))


def _code_positions(code: CodeType) -> list[tuple[int, int, int, int]]:
    """Return line, end line, column, end column of each instruction that has them."""
    positions = []
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or end_column is None:
            continue
        if (column, end_column) != (0, 0):  # the function's entry has no position
            positions.append((line, end_line, column, end_column))
    return positions


def _contains(node: ast.expr, position: tuple[int, int, int, int]) -> bool:
    line, end_line, column, end_column = position
    starts = (node.lineno, node.col_offset) <= (line, column)
    return starts and (end_line, end_column) <= (node.end_lineno or 0, node.end_col_offset or 0)


# -- functions from text ------------------------------------------------------------------------


def source_from_text(text: str, name: str = "<text>") -> FunctionSource:
    """Return the one function that `text` defines, or the lambda that it consists of.

    Raises `CdSyntaxError`: CD0100 if it is not Python, CD0106 for anything else.
    """
    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    source = Source(name, 1, text)
    skipped = len(text) - len(text.lstrip("\n"))
    try:
        body = _parse_safely(
            lambda: definition_blocks.parse_block(text[skipped:], 1 + skipped), name, [text]
        )
    except SyntaxError as error:
        if isinstance(error, CdError):
            raise
        raise _not_python(error, source, skipped) from None
    except ValueError:
        raise _too_deep(name) from None
    node = body[0] if len(body) == 1 else None
    if isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Lambda):
        return _as_source(node.value, source)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return _as_source(node, source)
    labels = tuple(Label(span_of(extra, source)) for extra in body[1:2] or body[:1])
    raise CdSyntaxError(
        Diagnostic(
            "CD0106",
            "the text has to define exactly one function",
            labels,
            helps=("give the names that it uses as a namespace instead of importing them there",),
        )
    )


# -- captured names -----------------------------------------------------------------------------


class _Missing:
    """The type of `MISSING`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()
"""The result of `Scope.lookup` for an unbound name."""


class LateNumber(NamedTuple):
    """A number that a name in a subscript was bound to after the function was decorated: it is open
    whether it is meant, or an index variable."""

    value: object


class Scope(NamedTuple):
    """The enclosing scopes of a function. Each lookup is dynamic: no binding is frozen."""

    cells: Mapping[str, CellType]
    globals: Mapping[str, object]
    builtins: Mapping[str, object]
    letters: Mapping[str, object] = MappingProxyType({})
    """The values of names fixed as index variables, whatever they are bound to now."""
    late: frozenset[str] = frozenset()
    """Names in subscripts that were unbound at the decoration, and that the module assigns."""

    def lookup(self, name: str) -> object:
        """Return the object that `name` is bound to now, or `MISSING`; a number that a name was
        bound to too late as a `LateNumber`."""
        if name in self.letters:
            return self.letters[name]
        value = self._bound(name)
        return LateNumber(value) if name in self.late and is_number(value) else value

    def _bound(self, name: str) -> object:
        if name in self.cells:
            try:
                return self.cells[name].cell_contents
            except ValueError:  # declared in the enclosing function, not assigned yet
                return MISSING
        if name in self.globals:
            return self.globals[name]
        return self.builtins.get(name, MISSING)

    def names(self) -> frozenset[str]:
        """Return all bound names, from which errors suggest the nearest one."""
        return frozenset({*self.cells, *self.globals, *self.builtins})


def is_number(value: object) -> bool:
    """Whether a captured value is a number, hence no index variable."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def scope_of(function: Callable[..., object]) -> Scope:
    """Return the scope in which captured names of `function` are resolved."""
    plain = unwrap_function(function)
    cells = dict(zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True))
    return Scope(cells, plain.__globals__, vars(builtins))


def scope_of_namespace(namespace: Mapping[str, object]) -> Scope:
    """Return the scope of a function given as text: the namespace, then Python's builtins."""
    return Scope({}, namespace, vars(builtins))


# -- errors -------------------------------------------------------------------------------------


def _stale(code: CodeType) -> CdSyntaxError:
    return CdSyntaxError(
        Diagnostic(
            "CD0102",
            f"the text of `{code.co_name}` at {_label(code.co_filename)}:{code.co_firstlineno} is "
            "not the one that was run: the file has been edited since it was imported",
            helps=("restart Python, or reload the module: `importlib.reload(module)`",),
        )
    )


def _too_deep(name: str) -> CdSyntaxError:
    return CdSyntaxError(
        Diagnostic(
            "CD0103",
            f"`{name}` is nested too deeply to be read",
            helps=("name parts of the long expression: `t = a + b` and then `t + c`",),
        )
    )


def out_of_memory_error(name: str) -> CdMemoryError:
    """Return the error (CD0705) where reading or compiling a function runs out of memory."""
    message = f"there is not enough memory to read or compile `{name}`"
    helps = ("let go of arrays that are not needed, or raise the limit (`ulimit -v`)",)
    return CdMemoryError(Diagnostic("CD0705", message, helps=helps))


def _not_a_function(value: object) -> CdError:
    kind = "functools.partial" if isinstance(value, functools.partial) else type(value).__name__
    return CdTypeError(
        Diagnostic(
            "CD0105",
            f"`@cd` compiles a function written with `def` or `lambda`, not a `{kind}`",
            helps=("write a function that calls it, and put `@cd` above that: `def f(x): ...`",),
        )
    )


def _not_python(error: SyntaxError, source: Source, skipped: int) -> CdSyntaxError:
    indented = source.text[skipped : skipped + 1] in (" ", "\t")
    line = (error.lineno or 1) + skipped - indented
    column = max(0, (error.offset or 1) - 1)
    column = min(column, len(source.line(line)))
    label = Label(Span(source, line, column, line, column + 1))
    return CdSyntaxError(
        Diagnostic(
            "CD0100",
            f"Python cannot read this: {error.msg}",
            (label,),
            helps=("correct the text: it has to be a function that Python itself would accept",),
        )
    )
