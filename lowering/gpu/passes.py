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
from ..ir.decision import Decided, Decision, Pass, Reason, Run
from ..ir.fresh import Fresh, fresh_for
from ..ir.loops import Program
from ..ir.rewrite import map_kernels
from ..passes.dce import eliminate_dead_code
from ..passes.inferred_decisions import rewriting
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


def _with_facts(rewrite: Rewriting) -> Run:
    """Return the run of a rewriting that needs facts about a program, and names it does not use;
    what it makes is declared."""

    def run(program: Program) -> Program:
        fresh = fresh_for(program)
        return fresh.declared(rewrite(program, facts_of(program), fresh))

    return rewriting(run)


def _in_bodies(rewrite: Callable[..., Any]) -> Rewriting:
    """Return a rewriting of bodies as one of programs."""
    return lambda program, facts, fresh: map_kernels(
        program, lambda body: rewrite(body, facts=facts, fresh=fresh)
    )


def _find_first(program: Program) -> Program:
    """Return the program with early exits as searches; the flags of those exits are dead."""
    fresh = fresh_for(program)
    rewritten = rewrite_find_first(program, facts_of(program), fresh)
    return program if rewritten is program else eliminate_dead_code(fresh.declared(rewritten))


def _rematerialize(program: Program, target: Target) -> Decided:
    """Return the program whose contractions recompute elements, and the arrays that went."""
    rewritten = rematerialize_elements(program, target, target.exact)
    remaining = {node.id for node in rewritten.locals}
    gone = (node for node in program.locals if node.id not in remaining)
    decisions = tuple(Decision("virtual", Recomputed.IN_TILES, node) for node in gone)
    return Decided(rewritten, decisions)


NORMALIZING: tuple[Pass, ...] = (
    Pass("substitute_induction", rewriting(substitute_induction)),
    Pass("recognize_updates", rewriting(lambda program: map_kernels(program, recognize_updates))),
    Pass("expand_dynamic", _with_facts(expand_dynamic)),  # of arrays whose sizes only the run gives
    Pass(
        "version_loops", _with_facts(version_loops)
    ),  # checks in front of loops leave their order open
    Pass("make_perfect_nests", rewriting(lambda p: make_perfect_nests(p, facts_of(p)))),
    Pass("split_and_rename", rewriting(split_and_rename)),
    Pass(
        "rewrite_arg_lookups",
        _with_facts(lambda program, _, fresh: rewrite_arg_lookups(program, fresh)),
    ),
    Pass("distribute_loops", _with_facts(distribute_loops)),
    Pass("separate_extremes", _with_facts(_in_bodies(separate_extremes))),
    Pass("distribute_loops 2", _with_facts(distribute_loops)),
    Pass("rewrite_arg_min_max", _with_facts(_in_bodies(rewrite_arg_min_max))),  # of each row
    Pass("distribute_loops 3", _with_facts(distribute_loops)),
    Pass("rewrite_arg_min_max 2", _with_facts(_in_bodies(rewrite_arg_min_max))),  # of all rows
    Pass("find_first", rewriting(_find_first)),
    Pass("rewrite_find_last", _with_facts(rewrite_find_last)),
    Pass("rewrite_idempotent_scatters", _with_facts(rewrite_idempotent_scatters)),
    Pass("rewrite_multi_prefix", _with_facts(rewrite_multi_prefix)),
    Pass("rewrite_last_writers", _with_facts(rewrite_last_writers)),
    Pass("rewrite_any_of", _with_facts(lambda program, _, fresh: rewrite_any_of(program, fresh))),
    Pass("double_buffer", _with_facts(double_buffer)),
    Pass("rewrite_right_looking", _with_facts(rewrite_right_looking)),
    Pass("skew_to_wavefronts", _with_facts(skew_to_wavefronts)),
)
"""Those that bring programs into the form that nests are mapped from."""

GPU_PASSES: tuple[Pass, ...] = (
    *NORMALIZING,
    Pass("rematerialize", _rematerialize),
)
"""All of them; `mapping` makes kernels of what they leave."""


def normalized(program: Program) -> Program:
    """Return a program as it is mapped to kernels."""
    target = Target("cuda")
    for stage in NORMALIZING:
        program = stage.run(program, target).program
    return program
