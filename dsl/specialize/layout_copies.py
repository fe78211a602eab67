"""Whether code for arrays in C order may be given copies of arrays that lie otherwise.

It may not where the caller would see the copy: where the array is written, is one array with
another one that is, is returned in part, or where it matters how it lies. Sums are added up in the
order of the array that was given: the specification of a copy says along which axis its neighbours
lie (`ArraySpec.nearest`).
"""

from __future__ import annotations

from ..elaborate.typed import Argument, Many, Part, Return, Updating
from .dynamic_sizes import Specs, copied
from .variants import Specialisation


def takes_copies(known: Specialisation, specs: Specs, wanted: Specs) -> bool:
    """Whether a form does for a call, of which it takes copies where `wanted` is in C order."""
    names = copied(specs, wanted)
    if not names:
        return True
    pairs = zip(known.typed.passed, known.procedure.parameters, strict=True)
    written = {path.root for path, one in pairs if one.written and not path.captured}
    seen = known.merged or known.typed.asks_layout or _shows(known.typed.returns)
    return not (seen or names & written)


def _shows(returns: Return) -> bool:
    """Whether views of arguments are returned, or parts of them."""
    match returns:
        case Argument(_, view):
            return view is not None
        case Many(items):
            return any(map(_shows, items))
        case Updating(item, updates):
            return _shows(item) or any(_shows(one.value) for one in updates)
        case Part():
            return True
        case _:
            return False
