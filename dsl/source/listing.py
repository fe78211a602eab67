"""Pretty-printing of Python code, with long lines wrapped where the meaning stays the same.

`astor` wraps long lines but does not support every construct; `ast.unparse` supports all and never
wraps. Nothing depends on which of them printed the text.
"""

from __future__ import annotations

import ast
import warnings


def format_code(code: ast.AST | str, indent: str = "    ") -> str:
    """Return `code` as text that parses to the same tree, wrapped where `astor` can do that."""
    tree = ast.parse(code) if isinstance(code, str) else code
    plain = ast.unparse(tree)
    wrapped = _print_wrapped(tree, indent)
    if wrapped is None or _dump_tree(wrapped) != _dump_tree(plain):
        return plain + "\n"
    return wrapped


def _print_wrapped(tree: ast.AST, indent: str) -> str | None:
    """Return the text from `astor`, or None where it is missing or fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # astor uses names that newer Pythons deprecate
            import astor

            text: str = astor.to_source(tree, indent_with=indent)
    except Exception:  # unmaintained: any failure only means that the other printer is used
        return None
    return text


def _dump_tree(text: str) -> str | None:
    try:
        return ast.dump(ast.parse(text))
    except SyntaxError:
        return None
