"""Python code as people read it: long lines wrapped where that does not change what is said.

`astor` wraps long lines but does not know every construct; `ast.unparse` knows all and never
wraps. Nothing depends on which of them wrote a listing.
"""

from __future__ import annotations

import ast
import warnings


def listing(code: ast.AST | str, indent: str = "    ") -> str:
    """Return `code` as Python text that parses to the same tree, wrapped where `astor` can."""
    tree = ast.parse(code) if isinstance(code, str) else code
    plain = ast.unparse(tree)
    wrapped = _wrapped(tree, indent)
    if wrapped is None or _dump(wrapped) != _dump(plain):
        return plain + "\n"
    return wrapped


def _wrapped(tree: ast.AST, indent: str) -> str | None:
    """Return what `astor` writes, or None where it is missing or fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # astor uses names that newer Pythons deprecate
            import astor

            text: str = astor.to_source(tree, indent_with=indent)
    except Exception:  # unmaintained: any failure only means that the other printer is used
        return None
    return text


def _dump(text: str) -> str | None:
    try:
        return ast.dump(ast.parse(text))
    except SyntaxError:
        return None
