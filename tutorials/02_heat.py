"""Tutorial 2: heat flowing through a plate, in ordinary NumPy notation.

    python3 tutorials/start.py 2          (or, with everything installed, tutorials/02_heat.py)

A function that was written for NumPy is compiled by adding the decorator alone. Here that is a time
loop over slices. The plate starts cold and has a hot shape that is kept hot; the picture shows
how the heat spreads. The same function without the decorator is run by NumPy, to compare.
"""

import argparse
import time
from pathlib import Path

import matplotlib
import numpy as np

import plusequals as pe

matplotlib.use("Agg")  # pictures go to files; no window is needed
from matplotlib import pyplot as plt

OUT = Path(__file__).parent / "out"

# --- The equation -------------------------------------------------------------------------------
#
# Heat flows from warm to cold. In a small time, each point of a plate changes by an amount that is
# proportional to the mean of its neighbours less itself:
#
#     du/dt = rate * (d2u/dx2 + d2u/dy2)
#
# On a grid of points one apart, the bracket is the sum of the four neighbours less four times the
# point. Slices say "all inner points" and "their neighbours above, below, left and right": `u[:-2]`
# is everything but the last two rows, which is where the upper neighbours of the inner rows are.
#
# Each statement reads the plate as it was before the statement, as in NumPy: no point sees a
# neighbour that has already moved on. The outermost points are never assigned: the rim stays cold.
# The second statement keeps the source hot. `u[...] = ` writes into the array that was passed;
# a bare `u = ` would only give the name to something else, and is refused with a sentence about it.


def diffuse(u, source, rate, steps):
    """Let heat flow for a number of steps; `u` is changed, points where `source` > 0 are kept."""
    for _ in range(steps):
        u[1:-1, 1:-1] += rate * (
            u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        )
        u[...] = np.where(source > 0, source, u)


# This is the function above, unchanged, and compiled. As a decorator it would be `@cd` above `def`;
# called like this, both versions stay at hand.
#
# The whole time loop becomes one compiled function: no array is allocated in a step, and the five
# slices become one pass over the plate that reads each point while it is still near.

compiled = pe.cd(diffuse)


# --- A plate ------------------------------------------------------------------------------------
#
# The source is drawn with slices too: a plus sign and an equals sign.


def plate(size):
    """Return the source: 1 where the plate is kept hot, 0 elsewhere."""
    source = np.zeros((size, size))
    bar, unit = max(1, size // 24), size // 12
    middle, left, right = size // 2, 3 * unit, 9 * unit
    source[middle - 2 * unit : middle + 2 * unit, left - bar : left + bar] = 1
    source[middle - bar : middle + bar, left - 2 * unit : left + 2 * unit] = 1
    for row in (middle - unit, middle + unit):
        source[row - bar : row + bar, right - 2 * unit : right + 2 * unit] = 1
    return source


# The explicit method is stable while rate <= 1/4: beyond that, a point overshoots its neighbours.
# The number of steps is an ordinary argument. It is not compiled in: changing it compiles nothing.


def spread(source, moments):
    """Return the plate at each of these numbers of steps."""
    u = np.zeros_like(source)
    plates, done = [], 0
    for moment in moments:
        compiled(u, source, 0.2, moment - done)
        plates.append(u.copy())
        done = moment
    return plates


# --- Is it right? -------------------------------------------------------------------------------
#
# The compiled function may round differently in the last digit, because it may add in another order
# than NumPy. Anything larger would be an error.


def compare(source, steps):
    """Print how far the compiled function and NumPy are apart, and how long each took."""
    took, plates = {}, {}
    compiled(np.zeros_like(source), source, 0.2, 1)  # so that compiling is not in the time
    for name, function in (("NumPy", diffuse), ("compiled", compiled)):
        plates[name] = np.zeros_like(source)
        start = time.perf_counter()
        function(plates[name], source, 0.2, steps)
        took[name] = time.perf_counter() - start
        print(f"{name:>9}: {steps} steps of {source.shape} in {took[name]:.4f} s")
    apart = np.abs(plates["NumPy"] - plates["compiled"]).max()
    print(f"largest difference: {apart:.1e}")
    if not apart < 1e-12:
        raise SystemExit("the two versions disagree: something is wrong")


# --- The picture --------------------------------------------------------------------------------


def draw(plates, moments, path):
    """Write the plates side by side."""
    figure, axes = plt.subplots(1, len(plates), figsize=(11, 3.2), layout="constrained")
    for axis, u, moment in zip(axes, plates, moments, strict=True):
        shown = axis.imshow(u, cmap="inferno", vmin=0, vmax=1)
        axis.set_title(f"after {moment} steps")
        axis.axis("off")
    figure.colorbar(shown, ax=axes, shrink=0.8, label="temperature")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main():
    """Compare with NumPy, then let the heat spread and write the picture."""
    options = argparse.ArgumentParser(description="Let heat flow through a plate.")
    options.add_argument("--quick", action="store_true", help="a small plate")
    options.add_argument("--out", type=Path, default=OUT, help="folder for the picture")
    chosen = options.parse_args()
    size, moments = (48, (1, 20, 100)) if chosen.quick else (384, (10, 1000, 10000))

    source = plate(size)
    compare(source, moments[1])
    plates = spread(source, moments)
    for moment, u in zip(moments, plates, strict=True):
        print(f"after {moment:>5} steps the mean temperature is {u.mean():.4f}")

    chosen.out.mkdir(parents=True, exist_ok=True)
    draw(plates, moments, chosen.out / "02_heat.png")
    print(f"picture: {chosen.out / '02_heat.png'}")


if __name__ == "__main__":
    main()
