"""Normalization of programs before the mapping: perfect nests, recurrences as parallel loops.

Each step is a function from program to program that changes no element: accumulations become
updates, nests become perfect, loop-carried statements are distributed into loops of their own, and
dependent tables are skewed into wavefronts.

>>> program, fresh = prepared(lowered('''
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

from functools import partial

from ..analysis.parallel_band import facts_of
from ..ir.fresh import Fresh, fresh_for
from ..ir.loops import Program
from ..ir.rewrite import over_kernels
from ..passes.dce import dead
from ..transform.distribute import fission
from ..transform.double_buffer import beforehand
from ..transform.expand_dynamic import rooms
from ..transform.induction import induced
from ..transform.perfect_nest import inward
from ..transform.recognize_updates import as_updates
from ..transform.split_index_set import in_sections
from ..transform.version import ahead
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


def prepared(program: Program) -> tuple[Program, Fresh]:
    """Return a normalized program, and a supply of names that it does not use."""
    program = over_kernels(induced(program), as_updates)
    fresh = fresh_for(program)
    program, fresh = _declare(rooms(program, facts_of(program), fresh), fresh)
    program, _ = _declare(ahead(program, facts_of(program), fresh), fresh)
    program = inward(program, facts_of(program))
    program = in_sections(program)
    fresh = fresh_for(program)
    program = pivots(program, fresh)
    program, fresh = _declare(program, fresh)
    for rewrite_body in (sided, firsts, firsts):  # extremes of each row, then of all
        program, fresh = _declare(fission(program, facts_of(program), fresh), fresh)
        rewritten = over_kernels(
            program, partial(rewrite_body, facts=facts_of(program), fresh=fresh)
        )
        program, fresh = _declare(rewritten, fresh)
    searched = searches(program, facts_of(program), fresh)
    if searched is not program:  # the flags of loop exits are dead
        searched = dead(fresh.declared(searched))
        fresh = fresh_for(searched)
    program, fresh = _declare(searched, fresh)
    program, fresh = _declare(hits(program, facts_of(program), fresh), fresh)
    program, fresh = _declare(marks(program, facts_of(program), fresh), fresh)
    program, fresh = _declare(ranks(program, facts_of(program), fresh), fresh)
    program, fresh = _declare(lasts(program, facts_of(program), fresh), fresh)
    program, fresh = _declare(flags(program, fresh), fresh)
    program, fresh = _declare(beforehand(program, facts_of(program), fresh), fresh)
    program, fresh = _declare(onward(program, facts_of(program), fresh), fresh)
    return fronts(program, facts_of(program), fresh), fresh


def _declare(program: Program, fresh: Fresh) -> tuple[Program, Fresh]:
    """Return a program with its new nodes as locals, which can be privatized, and new names."""
    program = fresh.declared(program)
    return program, fresh_for(program)
