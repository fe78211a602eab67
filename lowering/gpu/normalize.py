"""Programs as kernels are made of them: loops by themselves, in the order that has most to share.

Each step is a function from program to program, and changes no element: what accumulates says so,
nests are perfect, rounds that need others stand apart, and tables go front by front.

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
    """Return a program as kernels are made of it, and names that it does not have."""
    program = over_kernels(induced(program), as_updates)
    fresh = fresh_for(program)
    program, fresh = _declared(rooms(program, facts_of(program), fresh), fresh)
    program, _ = _declared(ahead(program, facts_of(program), fresh), fresh)
    program = inward(program, facts_of(program))
    program = in_sections(program)
    fresh = fresh_for(program)
    program = pivots(program, fresh)
    program, fresh = _declared(program, fresh)
    for change in (sided, firsts, firsts):  # what is best of each row, then of all
        program, fresh = _declared(fission(program, facts_of(program), fresh), fresh)
        made = over_kernels(program, partial(change, facts=facts_of(program), fresh=fresh))
        program, fresh = _declared(made, fresh)
    found = searches(program, facts_of(program), fresh)
    if found is not program:  # nobody asks for flags any more that said whether a loop was left
        found = dead(fresh.declared(found))
        fresh = fresh_for(found)
    program, fresh = _declared(found, fresh)
    program, fresh = _declared(hits(program, facts_of(program), fresh), fresh)
    program, fresh = _declared(marks(program, facts_of(program), fresh), fresh)
    program, fresh = _declared(ranks(program, facts_of(program), fresh), fresh)
    program, fresh = _declared(lasts(program, facts_of(program), fresh), fresh)
    program, fresh = _declared(flags(program, fresh), fresh)
    program, fresh = _declared(beforehand(program, facts_of(program), fresh), fresh)
    program, fresh = _declared(onward(program, facts_of(program), fresh), fresh)
    return fronts(program, facts_of(program), fresh), fresh


def _declared(program: Program, fresh: Fresh) -> tuple[Program, Fresh]:
    """Return a program with what was made for it among its locals, and new names: what no local
    is, no round has for itself."""
    program = fresh.declared(program)
    return program, fresh_for(program)
