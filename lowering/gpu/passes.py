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
from ..ir.rewrite import map_kernels
from ..passes.dce import eliminate_dead_code
from ..target import Target
from ..transform.distribute import distribute_loops
from ..transform.double_buffer import double_buffer
from ..transform.expand_dynamic import expand_dynamic
from ..transform.induction import substitute_induction
from ..transform.perfect_nest import make_perfect_nests
from ..transform.recognize_updates import recognize_updates
from ..transform.split_index_set import split_and_rename
from ..transform.version import version_loops
from .gemm.rematerialize import rematerialize_elements
from .recurrences.any_of import rewrite_any_of
from .recurrences.arg_lookup import rewrite_arg_lookups
from .recurrences.arg_min_max import rewrite_arg_min_max
from .recurrences.find_first import rewrite_find_first
from .recurrences.find_last import rewrite_find_last
from .recurrences.idempotent_scatter import rewrite_idempotent_scatters
from .recurrences.last_writer import rewrite_last_writers
from .recurrences.multi_prefix import rewrite_multi_prefix
from .recurrences.right_looking import rewrite_right_looking
from .recurrences.separate_min_max import separate_extremes
from .recurrences.wavefront import skew_to_wavefronts

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
    return lambda program, facts, fresh: map_kernels(
        program, lambda body: rewriting(body, facts=facts, fresh=fresh)
    )


def _searched(program: Program, _: Target) -> Program:
    """Return the program with early exits as searches; the flags of those exits are dead."""
    fresh = fresh_for(program)
    rewritten = rewrite_find_first(program, facts_of(program), fresh)
    return program if rewritten is program else eliminate_dead_code(fresh.declared(rewritten))


def _recomputed(program: Program, target: Target) -> Decided:
    """Return the program whose contractions recompute elements, and the arrays that went."""
    rewritten = rematerialize_elements(program, target, target.exact)
    kept = {node.id for node in rewritten.locals}
    gone = (node for node in program.locals if node.id not in kept)
    decisions = tuple(Decision("virtual", Recomputed.IN_TILES, node) for node in gone)
    return Decided(rewritten, decisions)


NORMALIZING: tuple[Pass, ...] = (
    Pass("induction", lambda program, _: substitute_induction(program)),
    Pass("updates", lambda program, _: map_kernels(program, recognize_updates)),
    _run("expansion", expand_dynamic),  # of arrays whose sizes only the run gives
    _run("versions", version_loops),  # checks in front of loops leave their order open
    Pass("perfect nests", lambda program, _: make_perfect_nests(program, facts_of(program))),
    Pass("index sets", lambda program, _: split_and_rename(program)),
    _run("arg lookups", lambda program, _, fresh: rewrite_arg_lookups(program, fresh)),
    _run("distribution", distribute_loops),
    _run("separate extremes", _in_bodies(separate_extremes)),
    _run("distribution 2", distribute_loops),
    _run("arg reductions", _in_bodies(rewrite_arg_min_max)),  # of each row
    _run("distribution 3", distribute_loops),
    _run("arg reductions 2", _in_bodies(rewrite_arg_min_max)),  # of all rows
    Pass("find first", _searched),
    _run("find last", rewrite_find_last),
    _run("conditional scatters", rewrite_idempotent_scatters),
    _run("multi-prefixes", rewrite_multi_prefix),
    _run("last writers", rewrite_last_writers),
    _run("any of", lambda program, _, fresh: rewrite_any_of(program, fresh)),
    _run("double buffering", double_buffer),
    _run("right-looking", rewrite_right_looking),
    _run("wavefronts", skew_to_wavefronts),
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
