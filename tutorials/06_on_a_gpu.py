"""Tutorial 6: the digits again, on a GPU, and every number held against the processor's.

    python3 tutorials/start.py 6

Functions stay as they are: `pe.use("cuda")` lets them run on the first NVIDIA device, where loops
become kernels. This tutorial trains the same network on the processor and on the device, then
compares all that one step computes. Where no device can be used it says why, does on the processor
what can be done there, and names what it leaves out.
"""

import argparse
import time

import numpy as np
from sklearn.datasets import load_digits

import plusequals as pe
from plusequals import cd

BATCH, HIDDEN, RATE, FEW = 128, 64, 0.5, 8

# --- One step -----------------------------------------------------------------------------------
#
# The network of the first tutorial with one rate and no momentum. On a device the products of
# matrices are computed by blocks of threads that share tiles of both, the sums over a row by the
# threads of one block, and everything else by a thread for each element. Nothing of that is
# written here: the same lines are what runs on a processor.


@cd
def train(w1, b1, w2, b2, x, y, rate):
    with comment("forward"):
        h[n, j] = max(sum(x[n, i] * w1[i, j]) + b1[j], 0)
        z[n, c] = sum(h[n, j] * w2[j, c]) + b2[c]
        top[n] = max(z[n, c])
        e[n, c] = exp(z[n, c] - top[n])
        total[n] = sum(e[n, c])
        loss[n] = log(total[n]) + top[n] - z[n, y[n]]
    with comment("backward"):
        d[n, c] = (e[n, c] / total[n] - where(c == y[n], 1.0, 0.0)) / x.shape[0]
        g[n, j] = where(h[n, j] > 0, sum(d[n, c] * w2[j, c]), 0.0)
        w2[j, c] -= rate * sum(h[n, j] * d[n, c])
        b2[c] -= rate * sum(d[n, c])
        w1[i, j] -= rate * sum(x[n, i] * g[n, j])
        b1[j] -= rate * sum(g[n, j])
    return loss.mean()


# Weights are drawn outside, so that both runs start from the same numbers. They are NumPy arrays:
# a call on a device copies them there, and what it wrote back. Whoever wants them to stay there
# uses tensors and routines, as the fourth tutorial does.


def new_run():
    """Return the weights, then the pictures and their classes in batches."""
    rng = np.random.default_rng(0)
    digits = load_digits()
    order = rng.permutation(len(digits.data))[: len(digits.data) // BATCH * BATCH]
    x = (digits.data[order] / 16).astype("float32").reshape(-1, BATCH, 64)
    y = digits.target[order].astype("int64").reshape(-1, BATCH)
    w1 = (rng.standard_normal((64, HIDDEN)) * 0.18).astype("float32")
    w2 = (rng.standard_normal((HIDDEN, 10)) * 0.18).astype("float32")
    return [w1, np.zeros(HIDDEN, "float32"), w2, np.zeros(10, "float32")], x, y


# `pe.override` is `pe.use` for as long as a `with` lasts. The first call compiles: C for the
# processor, kernels for the device that is there. That is left out of the time, and so is nothing
# else: copies to the device and back are in it. A network as small as this one is no work for a
# device, and nobody should expect it to be faster there.


def trained(backend, epochs):
    """Train on a backend; return the weights and the loss of each epoch."""
    weights, x, y = new_run()
    with pe.override(backend=backend):
        train(*[w.copy() for w in weights], x[0], y[0], RATE)
        losses, start = [], time.perf_counter()
        for _ in range(epochs):
            found = [float(train(*weights, *batch, RATE)) for batch in zip(x, y, strict=True)]
            losses.append(float(np.mean(found)))
    took = (time.perf_counter() - start) / epochs
    print(f"on {backend}: the loss goes from {losses[0]:.4f} to {losses[-1]:.4f}, "
          f"{1000 * took:.1f} ms an epoch")  # fmt: skip
    return weights, losses


# --- Is it the same? ----------------------------------------------------------------------------
#
# Sums are added in another order on a device, and `exp` comes from another library, so the last
# bits may differ, and nothing else may. `pe.compare` traces one step of a few digits on both, from
# the same weights, and looks at every assignment: what the element was, what it became. Had the
# device computed one number wrong, its line and its index would stand here, with what went into it.


def compare(backends):
    """Trace one step on backends, say whether they agree; end with an error where they do not."""
    weights, x, y = new_run()
    step = *weights, x[0, :FEW], y[0, :FEW], RATE
    found = pe.compare(train, step, backends, rtol=1e-4, atol=1e-5)
    print(f"one step, traced: {found}")
    if not found:
        raise SystemExit("the backends do not agree")


# --- All of it ----------------------------------------------------------------------------------
#
# `pe.backends()` says of each backend whether it can be used here, and if not, what is missing:
# the driver, a package, the compiler, a device. Nothing that is missing is an error before
# somebody asks for it.
#
# Two runs that begin alike do not stay alike forever: each step works with the last bits of the
# one before. So the weights are only close after some epochs, and the losses, which are means of
# many numbers, very close. The table at the end has a row for each kernel: the line of its first
# statement, its threads, and what they take of the device, as in any explanation.


def on_a_device(weights, losses, epochs):
    """Train on the device, too; what comes out has to be what the processor found."""
    there, found = trained("cuda", epochs)
    apart = max(float(np.abs(a - b).max()) for a, b in zip(weights, there, strict=True))
    print(f"after {epochs} epochs the weights are at most {apart:.1e} apart")
    if abs(found[-1] - losses[-1]) > 0.01:
        raise SystemExit("the losses differ: something is wrong")
    compare(("cc", "cuda"))
    step = [*new_run()[0], *(part[0] for part in new_run()[1:]), RATE]
    print("what the kernels take of the device, as their compiler says:")
    print(train.on("cuda").explain(*step).kernel_table)


def main():
    """Train where it can be done, compare, and say what was left out."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true", help="fewer epochs")
    options.add_argument("--out", help="as in the other tutorials; nothing is written")
    epochs = 3 if options.parse_args().quick else 20

    weights, losses = trained("cc", epochs)
    if losses[-1] >= losses[0]:
        raise SystemExit("it did not learn: something is wrong")
    why = pe.backends()["cuda"]
    if why == "available":
        on_a_device(weights, losses, epochs)
        return
    compare(("numpy", "cc"))
    print(f"cuda: {why}")
    print("left out, since there is no device: training on it, the comparison of its trace with")
    print("the processor's, and what its kernels take")


if __name__ == "__main__":
    main()
