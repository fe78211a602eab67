"""Detection of stale source: whether the text of a function is the text that was compiled.

The definition is recompiled by itself and the byte code compared. Import hooks that add checks
(assertions of a test runner, type checkers) rewrite byte code, so where their names occur only
names are compared. In doubt the answer is "not edited": a wrong refusal is worse than a missed
edit.
"""

from __future__ import annotations
import __future__

import ast
import copy
import dis
from collections.abc import Iterator
from types import CodeType, FunctionType

_FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
_JUMPS = frozenset([*dis.hasjrel, *dis.hasjabs])
_REWRITERS = ("@py", "typeguard", "TypeCheckMemo", "check_argument_types", "beartype", "jaxtyping")


def is_stale(function: FunctionType, tree: ast.AST) -> bool:
    """Return whether `tree`, the current text of `function`, compiles to different code."""
    code = function.__code__
    recompiled: list[CodeType] = []
    for optimize in (-1, 0, 1, 2):
        new = _recompile(function, tree, optimize)
        if new is None or _is_equivalent(code, new):
            return False
        recompiled.append(new)
    if _is_rewritten(code):
        return not _all_names(recompiled[0]) <= _all_names(code)
    return True


def enclosing_class(qualname: str) -> str:
    """Return the name of the innermost class in a function's qualified name, or ""."""
    parts = qualname.split(".")[:-1]
    while parts and parts[-1] == "<locals>":
        del parts[-2:]
    return parts[-1] if parts else ""


def _recompile(function: FunctionType, tree: ast.AST, optimize: int) -> CodeType | None:
    """Return the code of the definition without its decorators and defaults, or None.

    Placeholders bind captured names and the class, since these decide which instructions read a
    captured name and how `self.__name` is mangled.
    """
    code = function.__code__
    statement = _strip_decorators(tree)
    owner = enclosing_class(function.__qualname__)
    if owner.isidentifier():
        skeleton = ast.parse(f"class {owner}:\n pass").body[0]
        skeleton.body = [statement]  # type: ignore[attr-defined]
        statement = skeleton
    captured = [name for name in code.co_freevars if name != "__class__"]
    if captured:
        skeleton = ast.parse(f"def _():\n {' = '.join(captured)} = None").body[0]
        skeleton.body.append(statement)  # type: ignore[attr-defined]
        statement = skeleton
    module = ast.Module(body=[statement], type_ignores=[])
    try:
        flags = code.co_flags & _FUTURES
        whole = compile(module, code.co_filename, "exec", flags, True, optimize)
    except (SyntaxError, ValueError):
        return None
    return next((inner for inner in _nested_code(whole) if inner.co_name == code.co_name), None)


def _strip_decorators(tree: ast.AST) -> ast.stmt:
    """Return the definition without its decorators and default values."""
    node = copy.copy(tree)
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    node.args = copy.copy(node.args)
    node.args.defaults = []
    node.args.kw_defaults = [None] * len(node.args.kwonlyargs)
    if isinstance(node, ast.Lambda):
        return ast.copy_location(ast.Expr(node), node)
    node.decorator_list = []
    return node


def _nested_code(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects inside `code`, outer ones first."""
    level = [const for const in code.co_consts if isinstance(const, CodeType)]
    while level:
        yield from level
        level = [c for inner in level for c in inner.co_consts if isinstance(c, CodeType)]


def _is_equivalent(left: CodeType, right: CodeType) -> bool:
    return (
        (left.co_code == right.co_code or _instructions(left) == _instructions(right))
        and left.co_names == right.co_names
        and left.co_varnames == right.co_varnames
        and left.co_freevars == right.co_freevars
        and len(left.co_consts) == len(right.co_consts)
        and all(map(_are_equivalent, left.co_consts, right.co_consts))
    )


def _instructions(code: CodeType) -> list[tuple[str, object]]:
    """Return the instructions, without differences that depend on the rest of the module.

    `os.stat()` is compiled as an attribute and a call where the module imports `os`, as a method
    call where it does not; the lengths of jumps follow.
    """
    return [
        (
            "LOAD_ATTR" if step.opname == "LOAD_METHOD" else step.opname,
            None if step.opcode in _JUMPS or step.opname == "LOAD_CONST" else step.argval,
        )
        for step in dis.get_instructions(code)
        if step.opname not in ("PUSH_NULL", "EXTENDED_ARG", "NOP")
    ]


def _are_equivalent(left: object, right: object) -> bool:
    if isinstance(left, CodeType) and isinstance(right, CodeType):
        return _is_equivalent(left, right)
    return type(left) is type(right) and (left == right or repr(left) == repr(right))


def _is_rewritten(code: CodeType) -> bool:
    return any(name.startswith(_REWRITERS) for name in _all_names(code))


def _all_names(code: CodeType) -> set[str]:
    return {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
