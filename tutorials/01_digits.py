"""Tutorial 1: a network that reads handwritten digits, trained by a gradient that is derived.

    python3 tutorials/start.py            (or, with everything installed, tutorials/01_digits.py)

The data are the 1797 digits of 8 by 8 pixels that come with scikit-learn. The network has 64
inputs, one hidden layer and ten outputs. It is trained five times, each time on another four fifths
of the digits, and reads the held-out fifth. Two pictures show how it learned and what it misread.
"""

import argparse
import sys
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

import plusequals as pe
from plusequals import cd

matplotlib.use("Agg")  # pictures go to files; no window is needed
from matplotlib import pyplot as plt

OUT = Path(__file__).parent / "out"
HIDDEN, BATCH = 96, 32
RATE, MOMENTUM, DECAY, NOISE = 0.2, 0.9, 1e-4, 0.1

# --- The network --------------------------------------------------------------------------------
#
# A function under `@cd` is never run by Python. Its source is read and compiled. The single
# letters in the subscripts are index letters: nobody declares them, and each stands for a loop
# over the axis that it indexes. Here `n` counts examples, `i` pixels, `j` hidden units and `c`
# classes.
#
# A letter that is on the right but not on the left is what `sum` adds over. So the first line is a
# matrix product, `x @ w1 + b1`, with the loops in plain sight. With two arguments `max` is taken
# element by element, so this is the usual "rectifier": negative sums become zero.


@cd
def forward(x, w1, b1, w2, b2):
    r[n, j] = max(sum(x[n, i] * w1[i, j]) + b1[j], 0)
    z[n, c] = sum(r[n, j] * w2[j, c]) + b2[c]
    return r, z


# Reading a digit is taking the class with the largest score; the brackets in `argmax[c](...)` name
# the letter that is searched. Calling one `@cd` function in another copies its statements there,
# so nothing is lost by splitting work into small functions.


@cd
def read(label, x, w1, b1, w2, b2):
    r, z = forward(x, w1, b1, w2, b2)
    label[n] = argmax[c](z[n, c])


# --- Learning -----------------------------------------------------------------------------------
#
# The weights are tensors: arrays with a name, that stay where the computation is, and that carry
# further arrays of the same shape. `p.value` is the tensor's own array, `p.grad` its gradient, and
# `p.vel` a field that we declare below: the velocity of "gradient descent with momentum". The step
# is ordinary array notation, with no letters at all. Decay pulls each weight a little to zero.


@cd
def descend(p, rate, momentum, decay):
    p.vel = momentum * p.vel + p.grad + decay * p.value
    p.value -= rate * p.vel


# Softmax turns scores into probabilities, exp(z) / sum(exp(z)). Subtracting the largest score of
# each row first changes nothing in the quotient, and keeps `exp` from overflowing. With a single
# argument `max` is a reduction, as `sum` is.
#
# The loss of an example is -log(probability of the right class), in which `z[n, y[n]]` looks up the
# column that `y` names. Every intermediate array is a local, made by assigning it: `top`, `total`
# and so on are declared nowhere. Which of them get memory at all is for the compiler to decide. The
# blocks under `with comment(...)` change nothing of the result: they name parts of the work, in the
# generated C and wherever the run is looked at.


@cd
def cross_entropy(w1, b1, w2, b2, x, y):
    with comment("forward"):
        r, z = forward(x, w1, b1, w2, b2)
    with comment("softmax cross-entropy"):
        top[n] = max(z[n, c])
        total[n] = sum(exp(z[n, c] - top[n]))
        loss[n] = log(total[n]) + top[n] - z[n, y[n]]
    return loss.mean()


# `pe.backward` derives a function that computes the loss as well, and on the way back writes the
# gradient of each tensor to its `grad`. It is a `@cd` function like the others. Its statements can
# be read: `print(backward.text(*network, x, y))` says, for example, that the gradient of the scores
# comes through `exp`, and through the rectifier only where the unit was awake.

backward = pe.backward(cross_entropy)


# So one step of training is one compiled function: forward, loss, backward, and the four updates;
# `print(train.explain(...))` tells what became of each array and each loop, and why.


@cd
def train(w1, b1, w2, b2, x, y, rate, momentum, decay):
    loss = backward(w1, b1, w2, b2, x, y)
    with comment("gradient descent"):
        descend(w1, rate, momentum, decay)
        descend(b1, rate, momentum, 0.0)
        descend(w2, rate, momentum, decay)
        descend(b2, rate, momentum, 0.0)
    return loss


# --- One run ------------------------------------------------------------------------------------
#
# From here on it is plain Python and NumPy. Random numbers are drawn outside and handed in: the
# language has none. Weights start at random, as large as keeps the sums near one; biases at zero.


def new_network(rng):
    """Return the four weight tensors, freshly drawn."""
    sizes = {"w1": (64, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, 10), "b2": (10,)}
    network = []
    for name, shape in sizes.items():
        start = rng.standard_normal(shape) * np.sqrt(2 / shape[0]) if len(shape) == 2 else 0
        start = np.broadcast_to(start, shape).astype("float32")
        network.append(pe.tensor(name, shape, dtype="float32", init=start, fields=("vel",)))
    return network


# A call is then an ordinary call. Tensors keep their values from call to call, so a step returns
# only the loss, and what it did to the weights is in the weights. NumPy arrays, `x` and the
# labels, are read where they are. `read` writes its answers into the array that it is given.
#
# Each epoch goes through the training digits once, in a new order. Two things help to read digits
# never seen before: a little noise on the pixels, new each time, and a step size that falls to
# zero along a cosine. Whole batches only: every call then has the same shapes, and is compiled
# once.


def one_run(seed, epochs, bar):
    """Train on four fifths of the digits; return both curves and what was misread."""
    rng = np.random.default_rng(seed)
    digits = load_digits()
    order = rng.permutation(len(digits.data))
    known, held_out = np.split(order, [len(order) * 4 // 5])
    pixels = (digits.data / 16).astype("float32")
    pixels -= pixels[known].mean(axis=0)
    labels = digits.target.astype("int64")

    network = new_network(rng)
    answer = np.empty(len(held_out), dtype="int64")
    losses, accuracies = [], []
    for epoch in range(epochs):
        rate = RATE * (1 + np.cos(np.pi * epoch / epochs)) / 2
        order = rng.permutation(known)
        batches = order[: len(order) // BATCH * BATCH].reshape(-1, BATCH)
        loss = 0.0
        for batch in batches:
            noise = rng.standard_normal((BATCH, 64), dtype="float32")
            x = pixels[batch] + np.float32(NOISE) * noise
            loss += float(train(*network, x, labels[batch], float(rate), MOMENTUM, DECAY))
        read(answer, pixels[held_out], *network)
        losses.append(loss / len(batches))
        accuracies.append(float((answer == labels[held_out]).mean()))
        shown = {"loss": f"{losses[-1]:.4f}", "right": f"{accuracies[-1]:.1%}"}
        bar.set_postfix(shown, refresh=False)
        bar.update()
    wrong = np.flatnonzero(answer != labels[held_out])
    misread = [(digits.images[held_out[w]], labels[held_out[w]], answer[w]) for w in wrong]
    return losses, accuracies, misread


# --- Pictures -----------------------------------------------------------------------------------
#
# The loss is drawn on a logarithmic scale, because it falls by a factor of a hundred; the misread
# digits in per cent. One line for each shuffle: how far they lie apart is how much luck there is.


def draw_learning(runs, path):
    """Write the curves of all runs: loss on the left, digits misread on the right."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for losses, accuracies, _ in runs:
        left.semilogy(range(1, len(losses) + 1), losses, color="tab:blue", alpha=0.6)
        misread = [100 * (1 - accuracy) for accuracy in accuracies]
        right.plot(range(1, len(misread) + 1), misread, color="tab:red", alpha=0.6)
    left.set(title="loss while training", xlabel="epoch", ylabel="mean cross-entropy")
    right.set(title="held-out digits misread", xlabel="epoch", ylabel="per cent", ylim=(0, 10))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def draw_misread(runs, path):
    """Write a sheet of every digit that was misread, with the right and the given answer."""
    sheet = [entry for _, _, misread in runs for entry in misread]
    rows = max(1, -(-len(sheet) // 8))
    figure, axes = plt.subplots(rows, 8, figsize=(9, 1.4 * rows), layout="constrained")
    for axis in axes.flat:
        axis.axis("off")
    for axis, (image, label, answer) in zip(axes.flat, sheet, strict=False):
        axis.imshow(image, cmap="gray_r")
        axis.set_title(f"{label}, read as {answer}", fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)


# --- All of it ----------------------------------------------------------------------------------
#
# The first call of `train` compiles it; the result is kept on disk, so the next start is
# immediate. Five shuffles instead of one, because with 360 held-out digits one digit is already
# 0.3 per cent.


def main():
    """Train, print what came out, write both pictures; 0.975 is the mark to reach."""
    options = argparse.ArgumentParser(description="Train a network that reads digits.")
    options.add_argument("--quick", action="store_true", help="one short run")
    options.add_argument("--out", type=Path, default=OUT, help="folder for the pictures")
    chosen = options.parse_args()
    seeds, epochs = (range(1), 6) if chosen.quick else (range(5), 40)

    pause = 0.1 if sys.stderr.isatty() else 5  # seconds between two looks of the bar
    with tqdm(total=len(seeds) * epochs, unit="epoch", mininterval=pause) as bar:
        runs = [one_run(seed, epochs, bar) for seed in seeds]
    finals = [accuracies[-1] for _, accuracies, _ in runs]
    for seed, accuracy in zip(seeds, finals, strict=True):
        print(f"shuffle {seed}: {accuracy:.2%} of the held-out digits read correctly")
    print(f"mean over {len(finals)}: {np.mean(finals):.2%}")

    chosen.out.mkdir(parents=True, exist_ok=True)
    draw_learning(runs, chosen.out / "01_learning.png")
    draw_misread(runs, chosen.out / "01_misread.png")
    print(f"pictures: {chosen.out / '01_learning.png'} and {chosen.out / '01_misread.png'}")
    mark = 0.9 if chosen.quick else 0.975
    if np.mean(finals) < mark:
        raise SystemExit(f"below the mark of {mark:.1%}: something is wrong")


if __name__ == "__main__":
    main()
