"""C text with every pair of brackets, as a parser of C sees it."""

from __future__ import annotations

import re

from pycparser.c_generator import CGenerator
from pycparser.c_parser import CParser

TYPES = re.compile(r"\b(?:[fiu]\d+x\d+(?:_at)?|u?int\d+_t|bool)\b")


def with_brackets(text: str) -> str:
    """Return an expression of C with a pair of brackets for each operation."""
    types = "".join(f"typedef float {name};\n" for name in sorted({*TYPES.findall(text)}))
    conversion = r"__builtin_convertvector\((.*), ([fiu]\d+x\d+)\)"  # it takes a type
    cast = re.sub(conversion, r"((\2)(\1))", text)
    tree = CParser().parse(f"{types}double r = {cast};")
    shown: str = CGenerator(reduce_parentheses=False).visit(tree.ext[-1])
    return shown
