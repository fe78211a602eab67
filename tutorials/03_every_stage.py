"""Tutorial 3: one small function on its way from your text to C, with a stop at every stage.

    python3 tutorials/start.py 3

A compiler is a row of functions from value to value. Here they are called one by one, and each
value is printed: text, surface, assignments, loops, optimized loops, C. Nothing here is a special
view for a tutorial; these are the functions that run when you call your own.
"""

import argparse
from pathlib import Path
from pprint import pformat

import numpy as np

from plusequals import cd
from plusequals.backends.codegen.c_printer import print_program as emit
from plusequals.dsl.source.function_source import read_source
from plusequals.dsl.source.parse import parse
from plusequals.lowering.ir.interpret import run_procedure, run_program
from plusequals.lowering.ir.printer import print_procedure, print_program
from plusequals.lowering.lower import lower
from plusequals.lowering.pipeline import optimize
from plusequals.lowering.target import HOST

# --- The function -------------------------------------------------------------------------------
#
# The distance of every point of `a` from every point of `b`. It is written as one would explain
# it, with the differences in an array of their own. That array is the interesting part: for a
# thousand points on either side it would have millions of elements, each used once.


@cd
def distances(d, a, b):
    apart[i, j, k] = a[i, k] - b[j, k]
    d[i, j] = sqrt(sum(apart[i, j, k] ** 2))


def show(stage, text, explanation):
    """Print one stage: its name, what it is, and the value itself."""
    print(f"\n--- {stage} " + "-" * (80 - len(stage)))
    print(f"{explanation}\n")
    print(text.rstrip())


# --- 1 and 2: from text to surface --------------------------------------------------------------
#
# The function is never executed by Python. Its text is found (also in a notebook cell, also when
# the file was edited since), and parsed by Python's own parser. What comes out of `parse` is our
# own small tree, the "surface": what was written, before any name has a meaning. Whatever the
# language does not have is refused here. Every piece keeps its place in your file, so that later
# stages can point at it.


def source_and_surface():
    """Show the text that was found, and its first statement as a tree."""
    source = read_source(distances)
    text = source.source.text
    show("source", text, f"found in {Path(source.source.name).name}")
    surface = parse(source)
    first = pformat(surface.body[0], width=96)
    show("surface", first, f"the first of {len(surface.body)} statements, as data")


# --- 3: to assignments --------------------------------------------------------------------------
#
# Now the arguments come in: their element types and shapes. Names get a meaning (`sqrt` is a word
# of the language, `i` an index letter, `apart` a new array), letters get ranges, and every access
# is proven to stay inside its array. Array notation, had there been any, dissolves here as well.
#
# The result is the first of two intermediate forms: accumulating assignments. Each one says for
# which points it holds, what it adds up over which letters, and whether its target starts from
# zero. There are no loops yet, and no order of points: only meaning. All later stages have to
# keep it.


def assignments(arguments):
    """Return the function as accumulating assignments for such arguments, and show them."""
    procedure = distances.procedure(*arguments)
    show("assignments", print_procedure(procedure), "meaning: domains, sums, no loops")
    return procedure


# --- 4: to loops --------------------------------------------------------------------------------
#
# `lower` makes one nest of loops per assignment. This is the second intermediate form, and the
# last: the passes that follow turn loops into better loops. `+=` is still a word of it, an
# "update", rather than a read, an addition and a write: that is what later allows sums to run in
# parallel.


def loops(procedure):
    """Return the program of loops, and show it."""
    program = lower(procedure)
    show("loops", print_program(program), "one nest for each assignment")
    return program


# --- 5: to better loops -------------------------------------------------------------------------
#
# The passes are functions from program to program in one tuple, `PASSES`, and run in that order.
# An observer sees the program after each. Here it notes how many lines are left, and whether
# anything was changed. At the end every array has a place: the caller's memory, a scratch array,
# a scalar, or none at all because its values are computed where they are used; and a sentence
# that says why.


def optimized(program):
    """Return the optimized program with the place of each array, and show both."""
    before, notes = "", []

    def observe(name, now):
        nonlocal before
        text = print_program(now)
        changed = "changed" if text != before else "the same"
        notes.append(f"after {name:<14} {len(text.splitlines()):>3} lines, {changed}")
        before = text

    program, placement = optimize(program, HOST, observe)
    show("passes", "\n".join(notes), "each a function from program to program")
    show("optimized loops", print_program(program), "the same meaning, less work")
    nodes = [parameter.node for parameter in program.parameters] + list(program.locals)
    places = [f"{node.label:<8} {placement[node].where:<10} {placement[node]}" for node in nodes]
    show("places", "\n".join(places), "where each array lives, and why")
    return program, placement


# --- 6: to C ------------------------------------------------------------------------------------
#
# The emitter walks over the loops once and writes text. It decides nothing: what C and CUDA spell
# differently is a table. With the text comes a map from its lines to yours, which is how a
# complaint of the C compiler, or a value in a trace, is shown at the statement that it came from.


def c_text(program, placement):
    """Show the C function, each line beside the statement that it came from."""
    source = emit(program, placement)
    lines = source.text.splitlines()
    first, last = min(source.line_map), max(source.line_map)
    while lines[last].startswith(" ") and lines[last].strip() == "}":
        last += 1
    shown = []
    for number in range(first, last + 1):
        span = source.line_map.get(number)
        origin = f"// line {span.line}" if span else ""
        shown.append(f"{lines[number - 1]:<84} {origin}".rstrip())
    show("C", "\n".join(shown), f"{len(lines)} lines with the header; the heart of it is")


# --- Does it all mean the same? -----------------------------------------------------------------
#
# Both intermediate forms have a meaning of their own, without any C: the interpreter computes it,
# one scalar at a time, slowly and in plain sight. Every test of this project compares with it. So
# one can stop at any stage and ask: is the answer still right? Here the assignments, the loops
# and the compiled function are asked the same question.


def check(procedure, program, arguments):
    """Compare assignments, loops and compiled code with NumPy; ends badly where they differ."""
    _, a, b = arguments
    expected = np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=2))
    ways = {
        "assignments": lambda d: run_procedure(procedure, [d, a, b], print),
        "optimized loops": lambda d: run_program(program, [d, a, b], print),
        "compiled": lambda d: distances(d, a, b),
    }
    print()
    for name, way in ways.items():
        answer = np.zeros_like(expected)
        way(answer)
        error = np.abs(answer - expected).max()
        print(f"{name:<16} largest difference from NumPy: {error:.1e}")
        if not error < 1e-12:
            raise SystemExit(f"{name}: the meaning was lost on the way")


# `explain` is the same walk in one call, for any function: `print(distances.explain(d, a, b))`. It
# also counts what a call does and moves, and says of every loop why it was joined or kept apart.
# `distances.explain(d, a, b).to_html("distances.html")` is a page for the browser, with the
# function, its loops and its C side by side: point at a line, and what belongs to it lights up.


def main():
    """Walk through all stages."""
    options = argparse.ArgumentParser(description="Every stage from text to C.")
    options.add_argument("--quick", action="store_true", help="no difference here")
    options.add_argument("--out", type=Path, help="no difference here: all is printed")
    options.parse_args()

    rng = np.random.default_rng(0)
    arguments = np.zeros((4, 5)), rng.random((4, 3)), rng.random((5, 3))
    source_and_surface()
    procedure = assignments(arguments)
    program, placement = optimized(loops(procedure))
    c_text(program, placement)
    check(procedure, program, arguments)


if __name__ == "__main__":
    main()
