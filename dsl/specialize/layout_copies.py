"""Copies to C order of arguments with other layouts, and the conditions for them.

A copy must not be observable: the array may not be written, alias a written one, be returned in
part, and its layout may not be queried. Sums are evaluated in the order of the original array: the
specification of a copy has the axis with the smallest stride (`ArraySpec.nearest`).
"""

from __future__ import annotations

from ..elaborate.typed import Argument, Many, Part, Return, Updating
from .dynamic_sizes import Specs, copied_arguments
from .variants import Specialization


def can_take_copies(specialization: Specialization, specs: Specs, wanted: Specs) -> bool:
    """Whether a specialization serves a call with copies of arguments where `wanted` is in C
    order; True where no copies are needed."""
    names = copied_arguments(specs, wanted)
    if not names:
        return True
    pairs = zip(specialization.typed.passed, specialization.procedure.parameters, strict=True)
    written = {path.root for path, parameter in pairs if parameter.written and not path.captured}
    is_observable = (
        specialization.merged
        or specialization.typed.asks_layout
        or _returns_views(specialization.typed.returns)
    )
    return not (is_observable or names & written)


def _returns_views(returns: Return) -> bool:
    """Whether views or parts of arguments are returned."""
    match returns:
        case Argument(_, view):
            return view is not None
        case Many(items):
            return any(map(_returns_views, items))
        case Updating(item, updates):
            return _returns_views(item) or any(_returns_views(update.value) for update in updates)
        case Part():
            return True
        case _:
            return False
