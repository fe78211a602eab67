"""The same program written in another way: what it gives has to stay the same, bit by bit."""

from __future__ import annotations

import ast
import random
from dataclasses import replace

from .layouts import WRITABLE
from .model import ArgSpec, Program
from .plain_index import LETTER

KINDS = ("layout", "packed", "letters", "dead", "temporary")


def variant(program: Program) -> tuple[str, Program] | None:
    """Return another form of a program and what was done, always the same for the same program."""
    rng = random.Random(program.text)
    if rng.random() < 0.5:
        return None  # half of the programs: it costs as much as the rest
    for kind in rng.sample(KINDS, len(KINDS)):
        match kind:
            case "layout" | "packed":
                if "reshape" in program.text or "ravel" in program.text:
                    continue  # a view or a copy, as the layout has it
                made = replace(program, args=tuple(_relaid(s, rng, kind) for s in program.args))
            case "letters":
                made = replace(program, text=_with_other_letters(program.text, rng))
            case "dead":
                made = replace(program, text=_with_dead_code(program.text, rng))
            case _ if "tick(" in program.text:
                continue  # an operand has effects, whose order is observed
            case _:
                made = replace(program, text=_with_temporaries(program.text, rng))
        if made != program:
            return kind, made
    return None


def _relaid(spec: ArgSpec, rng: random.Random, kind: str) -> ArgSpec:
    if spec.view is not None or not spec.is_array or spec.layout in ("zero", "readonly"):
        return spec
    return replace(spec, layout="C" if kind == "packed" else rng.choice(WRITABLE))


def _with_other_letters(text: str, rng: random.Random) -> str:
    tree = ast.parse(text)
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and LETTER.fullmatch(n.id)]
    letters = sorted({n.id for n in names})
    others = rng.sample(["i", "j", "k", "l", "m", "n", "o", "i1", "k_", "j2"], len(letters))
    for name in names:
        name.id = others[letters.index(name.id)]
    return ast.unparse(tree) + "\n"


def _blocks(tree: ast.AST) -> list[list[ast.stmt]]:
    return [
        node.body for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.For | ast.While | ast.If)
        and not (isinstance(node, ast.If) and _has_letters(node.test))
    ]  # fmt: skip


def _has_letters(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Name) and LETTER.fullmatch(n.id) for n in ast.walk(node))


def _with_dead_code(text: str, rng: random.Random) -> str:
    tree = ast.parse(text)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    names = [a.arg for a in function.args.args]
    if not names:
        return text
    name = rng.choice(names)
    dead = rng.choice((
        f"dead = {name} + 1", f"dead = {name}", "dead = 1", f"if False:\n    dead = {name} * 2",
        f"for dead in range(0):\n    dead_too = {name} + dead", "if True:\n    pass",
        f"dead = {name} > 0", f"def dead(x):\n    return x + {name}",
    ))  # fmt: skip
    block = rng.choice(_blocks(tree))
    block[rng.randrange(len(block)) : 0] = ast.parse(dead).body
    return ast.unparse(tree) + "\n"


def _with_temporaries(text: str, rng: random.Random) -> str:
    """Return the text with one operand of one statement of array notation in a name of its own."""
    tree = ast.parse(text)
    places = [
        (block, n) for block in _blocks(tree) for n, s in enumerate(block)
        if isinstance(s, ast.Assign | ast.AugAssign) and isinstance(s.value, ast.BinOp)
        and not _has_letters(s)
    ]  # fmt: skip
    if not places:
        return text
    block, n = rng.choice(places)
    value = block[n].value  # type: ignore[attr-defined]
    side = rng.choice(("left", "right"))
    operand = getattr(value, side)
    if isinstance(operand, ast.Constant):
        return text
    setattr(value, side, ast.Name("held", ast.Load()))
    block.insert(n, ast.Assign([ast.Name("held", ast.Store())], operand))
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
