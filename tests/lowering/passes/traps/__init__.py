"""Small programs in which something forbids what a pass would like to do, or nearly does.

Each is run before and after every pass on several inputs: whatever a pass does, all that can be
seen has to stay. The letters that a program does not make itself are parameters, as in `ARRAYS`.
"""

from . import (
    buffers,
    cse,
    dead,
    exchange,
    fuse,
    gather,
    hoist,
    inplace,
    overwritten,
    past,
    repeated,
    shrink,
    simplify,
    sink,
    unroll,
    virtualize,
)

ARRAYS = {
    "y": "f64[8]", "z": "f64[8]", "x": "f64[8]", "a": "f64[8, 8]", "b": "f64[8, 8]", "c": "f64[1]",
    "p": "i64[8]", "q": "i64[8]", "n": "i64",
}  # fmt: skip
TRAPS = {
    f"{kind}: {name}": body
    for kind, table in {
        "fuse": fuse.FUSE | past.PAST, "virtualize": virtualize.VIRTUALIZE, "shrink": shrink.SHRINK,
        "hoist": hoist.HOIST, "cse": cse.CSE, "dead": dead.DEAD, "buffers": buffers.BUFFERS,
        "gather": gather.GATHER, "simplify": simplify.SIMPLIFY, "sink": sink.SINK,
        "inplace": inplace.INPLACE, "exchange": exchange.EXCHANGE,
        "unroll": unroll.UNROLL, "repeated": repeated.REPEATED,
        "overwritten": overwritten.OVERWRITTEN, "zeros": overwritten.ZEROS,
    }.items()
    for name, body in table.items()
}  # fmt: skip
