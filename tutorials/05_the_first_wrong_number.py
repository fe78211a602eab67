"""Tutorial 5: a training run turns into NaN, and the trace says where, why, and since when.

    python3 tutorials/start.py 5

Every number that a `@cd` function computes can be seen: `pe.trace()` records each assignment of
what runs inside the `with`, with what it read and what the element was before and after. The
functions stay as they are, and compute the very same bits.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import plusequals as pe
from plusequals import cd

OUT = Path(__file__).parent / "out"

# --- A run that goes wrong ----------------------------------------------------------------------
#
# One layer reads digits, as in the tutorials before. This time somebody wrote softmax as it stands
# in the textbook, and the pixels are whole numbers from 0 to 16. Both are fine on paper.


@cd
def train(w, b, x, y, rate):
    with comment("forward"):
        z[n, c] = sum(x[n, i] * w[i, c]) + b[c]
        e[n, c] = exp(z[n, c])
        p[n, c] = e[n, c] / sum[k](e[n, k])
    with comment("backward"):
        d[n, c] = (p[n, c] - where(c == y[n], 1.0, 0.0)) / x.shape[0]
        w[i, c] -= rate * sum(x[n, i] * d[n, c])
        b[c] -= rate * sum(d[n, c])
    loss[n] = -log(p[n, y[n]])
    return loss.mean()


def new_run():
    """Return the weights, the pictures and their classes, in batches of 32."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.data))[:1792]
    x = digits.data[order].astype("float32").reshape(-1, 32, 64)
    y = digits.target[order].astype("int64").reshape(-1, 32)
    return np.zeros((64, 10), "float32"), np.zeros(10, "float32"), x, y


def first_bad_step(w, b, x, y, rate):
    """Train until the loss is no number; return that step, and the weights before it."""
    for step in range(len(x)):
        kept = w.copy(), b.copy()
        loss = train(w, b, x[step], y[step], rate)
        if not np.isfinite(loss):
            return step, *kept
    return None


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--out", type=Path, default=OUT, help="where the page is written")
parser.add_argument("--quick", action="store_true", help="the same: it is quick already")
options = parser.parse_args()
options.out.mkdir(parents=True, exist_ok=True)

w, b, x, y = new_run()
step, w, b = first_bad_step(w, b, x, y, 0.5)
print(f"the loss of step {step} is no number any more\n")

# --- The first wrong number ---------------------------------------------------------------------
#
# The step is run once more from the weights that it began with, and traced. `first_nonfinite` is
# the first element, in the order of the program, that became NaN or infinite. A record prints
# itself as the statement that you wrote, with the indices and the values filled in.

with pe.trace() as trace:
    train(w.copy(), b.copy(), x[step], y[step], 0.5)

wrong = trace.first_nonfinite()
print(f"{len(trace):,} assignments were recorded, and this is the first wrong one:")
print(f"  line {wrong.line}: {wrong}\n")

# So it is no division and no logarithm: `exp` of a score near a hundred does not fit a float32.
# And why is the score so large? `why` goes back from an element through the assignments that made
# it, here two levels of them with the four largest numbers that the sum reads.

print(trace.why("z", wrong.index, depth=2), "\n")

# The pixels are sixteen times as large as in the tutorials before, and the first step moved the
# weights accordingly. There are two ways out, and one should take both.


@cd
def repaired(w, b, x, y, rate):
    with comment("forward"):
        z[n, c] = sum(x[n, i] * w[i, c]) + b[c]
        top[n] = max(z[n, c])
        e[n, c] = exp(z[n, c] - top[n])
        p[n, c] = e[n, c] / sum[k](e[n, k])
    with comment("backward"):
        d[n, c] = (p[n, c] - where(c == y[n], 1.0, 0.0)) / x.shape[0]
        w[i, c] -= rate * sum(x[n, i] * d[n, c])
        b[c] -= rate * sum(d[n, c])
    return mean[n](log(sum[c](e[n, c])) + top[n] - z[n, y[n]])


w, b, x, y = new_run()
losses = [repaired(w, b, x[step] / 16, y[step], 0.5) for step in range(len(x))]
print(f"repaired: the loss goes from {losses[0]:.2f} to {np.mean(losses[-8:]):.2f}\n")

# --- Asking before it goes wrong ----------------------------------------------------------------
#
# In checked mode a NaN that is born is an error, at its place and with its values. Nothing else has
# to be known beforehand. (An infinity is none: sums of probabilities may well want one.)

w, b, x, y = new_run()
try:
    with pe.checked():
        first_bad_step(w, b, x, y, 0.5)
except ValueError as error:
    print(error, "\n")

# --- Was it the compiler? -----------------------------------------------------------------------
#
# `compare` runs a call on two backends, the slow and obvious interpreter first, and finds the first
# assignment at which they part. The arguments are copied. `exp` and `log` of a C library may differ
# from NumPy's in the last digit, so that much is allowed here.

few = slice(0, 4)
arguments = (w, b, x[0][few] / 16, y[0][few], 0.5)
print(pe.compare(repaired, arguments, rtol=1e-4, atol=1e-6))

# And `bisect` names the stage of compiling after which a result is another one: none is.

print("a stage that changed a result:", pe.bisect(repaired, arguments, rtol=1e-4, atol=1e-6), "\n")

# --- Reading it all -----------------------------------------------------------------------------
#
# A trace can ask for less: for arrays, for lines, for indices. Only that is recorded. Printed, it
# is a tree: the call, its comments and loops, the statements, and under each some of its elements.

with pe.trace(where="n == 0 and c == 3") as some:
    repaired(*arguments)
print(some, "\n")

# As a page it can be folded, searched, and followed to the lines of the function; as an array it is
# ready for NumPy.

page = options.out / "05_trace.html"
trace.to_html(page)
table = trace.records()
scores = table[table["array"] == "z"]["after"]
print(f"the scores of that step go up to {scores.max():.0f}; the whole trace is in {page}")
