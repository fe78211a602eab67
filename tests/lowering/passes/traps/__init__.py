"""Small programs in which something forbids what a pass would like to do, or nearly does.

Each is run before and after every pass on several inputs: whatever a pass does, all that can be
seen has to stay. The letters that a program does not make itself are parameters, as in `ARRAYS`.
"""

from . import (
    buffers,
    compute_inplace,
    contract_arrays,
    cse,
    eliminate_dead_code,
    eliminate_dead_stores,
    eliminate_repeated_nests,
    fuse,
    hoist,
    past,
    search_to_gather,
    simplify,
    sink,
    swap_buffers,
    unroll,
    virtualize,
)

ARRAYS = {
    "y": "f64[8]", "z": "f64[8]", "x": "f64[8]", "a": "f64[8, 8]", "b": "f64[8, 8]", "c": "f64[1]",
    "p": "i64[8]", "q": "i64[8]", "n": "i64",
}  # fmt: skip
_OF_PASSES = (
    fuse, virtualize, contract_arrays, hoist, cse, eliminate_dead_code, search_to_gather, simplify,
    sink, compute_inplace, swap_buffers, unroll, eliminate_repeated_nests, eliminate_dead_stores,
    buffers,
)  # fmt: skip
_OF_KIND = {module.__name__.rpartition(".")[2]: module.TRAPS for module in _OF_PASSES}
TRAPS = {
    f"{kind}: {name}": body
    for kind, table in {
        **_OF_KIND,
        "fuse": fuse.TRAPS | past.TRAPS,
        "eliminate_zero_fills": eliminate_dead_stores.ZERO_FILLS,
    }.items()
    for name, body in table.items()
}
"""The programs, by the pass that they are made for."""
