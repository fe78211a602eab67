"""The passes of a device, in their order: programs are normalized before nests are mapped.

Each is a rewriting that changes no element: accumulations become updates, nests become perfect,
recurrences become reductions, scans and scatters, loop-carried statements are distributed into
loops of their own, dependent tables are skewed into wavefronts; at last contractions recompute what
only they read. They follow the target-independent passes of `pipeline`, under the same observer.

>>> program = normalized(lowered('''
... for i in range(1, 40):
...     for j in range(1, 50):
...         u[i, j] = max(u[i - 1, j], u[i, j - 1])
... ''', u="i64[40, 50]"))
>>> print_loops(program.kernels[0].body)
for front in 2..89:
    for i in max(1, front - 49)..min(40, front):
        # u[i, j] = max(u[i - 1, j], u[i, j - 1])
        u[i, -i + front] = max(u[i - 1, -i + front], u[i, -i + front - 1])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..analysis.parallel_band import Facts, facts_of
from ..ir.decision import Decided, Decision, Pass, Reason
from ..ir.fresh import Fresh, fresh_for
from ..ir.loops import Program
from ..ir.rewrite import over_kernels
from ..passes.dce import dead
from ..target import Target
from ..transform.distribute import fission
from ..transform.double_buffer import beforehand
from ..transform.expand_dynamic import rooms
from ..transform.induction import induced
from ..transform.perfect_nest import inward
from ..transform.recognize_updates import as_updates
from ..transform.split_index_set import in_sections
from ..transform.version import ahead
from .gemm.rematerialize import anew
from .recurrences.any_of import flags
from .recurrences.arg_lookup import pivots
from .recurrences.arg_min_max import firsts
from .recurrences.find_first import searches
from .recurrences.find_last import hits
from .recurrences.idempotent_scatter import marks
from .recurrences.last_writer import lasts
from .recurrences.multi_prefix import ranks
from .recurrences.right_looking import onward
from .recurrences.separate_min_max import sided
from .recurrences.wavefront import fronts

Rewriting = Callable[[Program, Facts, Fresh], Program]


class Recomputed(Reason):
    """Why an array is not stored on a device."""

    IN_TILES = "the product that reads it computes its elements where it fills tiles"


def _run(name: str, rewriting: Rewriting) -> Pass:
    """Return the pass of a rewriting that needs facts about a program, and names it does not use;
    what it makes is declared."""

    def run(program: Program, _: Target) -> Program:
        fresh = fresh_for(program)
        return fresh.declared(rewriting(program, facts_of(program), fresh))

    return Pass(name, run)


def _in_bodies(rewriting: Callable[..., Any]) -> Rewriting:
    """Return a rewriting of bodies as one of programs."""
    return lambda program, facts, fresh: over_kernels(
        program, lambda body: rewriting(body, facts=facts, fresh=fresh)
    )


def _searched(program: Program, _: Target) -> Program:
    """Return the program with early exits as searches; the flags of those exits are dead."""
    fresh = fresh_for(program)
    rewritten = searches(program, facts_of(program), fresh)
    return program if rewritten is program else dead(fresh.declared(rewritten))


def _recomputed(program: Program, target: Target) -> Decided:
    """Return the program whose contractions recompute elements, and the arrays that went."""
    rewritten = anew(program, target, target.exact)
    kept = {node.id for node in rewritten.locals}
    gone = (node for node in program.locals if node.id not in kept)
    decisions = tuple(Decision("virtual", Recomputed.IN_TILES, node) for node in gone)
    return Decided(rewritten, decisions)


NORMALIZING: tuple[Pass, ...] = (
    Pass("induction", lambda program, _: induced(program)),
    Pass("updates", lambda program, _: over_kernels(program, as_updates)),
    _run("expansion", rooms),  # of arrays whose sizes only the run gives
    _run("versions", ahead),  # checks in front of loops leave their order open
    Pass("perfect nests", lambda program, _: inward(program, facts_of(program))),
    Pass("index sets", lambda program, _: in_sections(program)),
    _run("arg lookups", lambda program, _, fresh: pivots(program, fresh)),
    _run("distribution", fission),
    _run("separate extremes", _in_bodies(sided)),
    _run("distribution 2", fission),
    _run("arg reductions", _in_bodies(firsts)),  # of each row
    _run("distribution 3", fission),
    _run("arg reductions 2", _in_bodies(firsts)),  # of all rows
    Pass("find first", _searched),
    _run("find last", hits),
    _run("conditional scatters", marks),
    _run("multi-prefixes", ranks),
    _run("last writers", lasts),
    _run("any of", lambda program, _, fresh: flags(program, fresh)),
    _run("double buffering", beforehand),
    _run("right-looking", onward),
    _run("wavefronts", fronts),
)
"""Those that bring programs into the form that nests are mapped from."""

GPU_PASSES: tuple[Pass, ...] = (
    *NORMALIZING,
    Pass("rematerialization", lambda program, t: _recomputed(program, t).program, _recomputed),
)
"""All of them; `mapping` makes kernels of what they leave."""


def normalized(program: Program) -> Program:
    """Return a program as it is mapped to kernels."""
    target = Target("cuda")
    for stage in NORMALIZING:
        program = stage.run(program, target)
    return program
