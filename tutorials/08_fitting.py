"""Tutorial 8: a pendulum is fitted to data, and what makes its gradient wrong is found.

    python3 tutorials/start.py 8

A driven pendulum was filmed. How strongly gravity, drive and friction act on it is to be told from
the angles: `pe.value_and_gradient` differentiates a thousand steps of the solver. The first attempt
gets stuck. Its gradient is wrong, and the trace says which statement is to blame.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from scipy.optimize import minimize

import plusequals as pe
from plusequals import cd

matplotlib.use("Agg")  # pictures go to files; no window is needed
from matplotlib import pyplot as plt

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="the picture's")
parser.add_argument("--quick", action="store_true", help="the same: it is quick already")
options = parser.parse_args()
options.out.mkdir(parents=True, exist_ok=True)

STEPS, H = 1000, 0.05

# --- The equation -------------------------------------------------------------------------------
#
# The three parameters are p[0] for gravity, p[1] for the drive, and p[2] for the friction:
#
#     angle' = speed        speed' = p[1] cos(1.3 time) - p[0] sin(angle) - p[2] friction(speed)
#
# The friction of the bearing was measured before, at 161 speeds from -8 to 8. The obvious way to
# read such a table is to take the nearest entry. A function may be an argument of another one, and
# is then compiled with it; so this one can be exchanged later.


@cd
def nearest(table, speed):
    return table[int((speed + 8) * 10 + 0.5)]


@cd
def slope(angle, speed, time, p, table, friction):
    drive = p[1] * np.cos(1.3 * time)
    drag = p[2] * friction(table, speed)
    return speed, drive - p[0] * np.sin(angle) - drag


# A step of Runge and Kutta's method takes the slope at its beginning, twice in its middle, and at
# its end. The loss is how far the computed angles are from the data. Nothing here is written for
# the sake of a derivative: it is a loop over time, with plain numbers in it.


@cd
def step(angle, speed, time, p, table, friction):
    a1, s1 = slope(angle, speed, time, p, table, friction)
    a2, s2 = slope(angle + H / 2 * a1, speed + H / 2 * s1, time + H / 2, p, table, friction)
    a3, s3 = slope(angle + H / 2 * a2, speed + H / 2 * s2, time + H / 2, p, table, friction)
    a4, s4 = slope(angle + H * a3, speed + H * s3, time + H, p, table, friction)
    angle += H / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    speed += H / 6 * (s1 + 2 * s2 + 2 * s3 + s4)
    return angle, speed


@cd
def swing(p, table, friction):
    angles = np.zeros(STEPS)
    angle, speed = 1.0, 0.0
    for t in range(STEPS):
        angle, speed = step(angle, speed, H * t, p, table, friction)
        angles[t] = angle
    return angles


@cd
def loss(p, table, data, friction):
    error = swing(p, table, friction) - data
    return np.mean(error * error)


# The derivative goes back through all steps. However many parameters there are, it takes the time
# of two or three losses. What it keeps of each step for the way back is a dozen numbers or two:
# `print(descent.kept(...))` lists them. What it returns, the number and its gradient, is what an
# optimizer of SciPy asks for; here that is L-BFGS.

descent = pe.value_and_gradient(loss, wrt="p")


def fit(guess, table, data, friction):
    """Return the parameters that L-BFGS ends with; print how it ended."""
    found = minimize(descent, guess, (table, data, friction), jac=True, method="L-BFGS-B")
    before, after = loss(guess, table, data, friction), found.fun
    print(f"{friction.__name__}: the loss goes from {before:.4f} to {after:.4f}", end=" ")
    print(f"in {found.nfev} evaluations: {found.message.strip(': ')}")
    return found.x


# --- The data -----------------------------------------------------------------------------------
#
# The data are made up, so that the answer is known. They come from another reading of the table, as
# a polygon: between two entries it is interpolated.


@cd
def between(table, speed):
    place = (speed + 8) * 10
    k = int(place)
    return table[k] + (place - k) * (table[k + 1] - table[k])


speeds = np.arange(-80, 81) / 10
table = 0.3 * speeds + 0.1 * speeds * np.abs(speeds)
true, guess = np.array([4.0, 1.5, 1.0]), np.array([3.0, 0.5, 0.5])
noise = np.random.default_rng(0).standard_normal(STEPS)
data = swing(true, table, between) + 0.02 * noise

stuck = fit(guess, table, data, nearest)
print()

# --- A wrong gradient ---------------------------------------------------------------------------
#
# The optimizer finds no step downhill any more, far from the answer. Is the gradient right there?
# `check_gradient` holds it against differences of the loss, one parameter after another, and shows
# where they disagree most. With `digits=` a disagreement is an error.

print(pe.check_gradient(loss, (stuck, table, data, nearest), wrt="p"), "\n")
try:
    pe.check_gradient(loss, (stuck, table, data, nearest), wrt="p", digits=3)
except pe.CdError as error:
    print(error, "\n")

# Not one digit is right. But a derivative is that of the function as it is written, so there has to
# be a number that depends on the parameters in another way than we think. Which one? Two runs are
# traced, whose parameters differ by a billionth. In nearly every step, what depends on them should
# have other bits.

with pe.trace() as trace:
    loss(stuck, table, data, nearest)
with pe.trace() as moved:
    loss(stuck * (1 + 1e-9), table, data, nearest)

one, other = trace.records(), moved.records()
differs = one["after"] != other["after"]
print(f"{differs.sum():,} of {len(one):,} numbers differ, but none of these lines:")
for line in np.unique(one["line"]):
    here = np.flatnonzero(one["line"] == line)
    if not differs[here].any():
        print(f"  line {line}, {len(here):,} times, first as {trace[here[0]]}")

# The zeros and the numbers that the loop begins with are meant to stay as they are. The friction is
# not. `why` shows the first one that is not zero, the step `t` in which it was computed, and all
# that it came from.

wrong = next(record for record in trace.where(array="drag") if record.after)
print(f"\n{trace.why(wrong, depth=3)}\n")

# It came from an entry of the table, and from no speed: the speed has only chosen the entry. A
# position is an integer, through which no derivative goes. So this loss is a staircase of many
# small steps, and the gradient is that of one step, where friction does not change with speed. The
# differences see the stairs from farther away. Neither is at fault: the polygon has the slope that
# was meant. (From most other guesses L-BFGS arrives all the same, often after several times as many
# evaluations: a gradient that is wrong need not be noticed.)

print(pe.check_gradient(loss, (stuck, table, data, between), wrt="p"), "\n")
fitted = fit(guess, table, data, between)
print("\n         gravity   drive  friction")
for name, p in (("guess", guess), ("nearest", stuck), ("between", fitted), ("true", true)):
    print(f"{name:>7}  {p[0]:7.3f} {p[1]:7.3f}   {p[2]:7.3f}")

# --- The picture --------------------------------------------------------------------------------
#
# On the left the data, the guess and the fit. On the right both losses along the drive, where the
# first attempt was stuck, with their gradients as tangents: the stairs go up where each of their
# steps goes down. Of the polygon, too, the gradient is exact; its corners are why differences agree
# with it to four digits and not to ten.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.5), layout="constrained")
times = H * np.arange(1, STEPS + 1)
left.plot(times, data, ".", color="darkgray", label="data")
left.plot(times, swing(guess, table, between), color="tab:red", label="guess")
left.plot(times, swing(fitted, table, between), color="tab:blue", label="fit")
left.set(xlabel="time", ylabel="angle", title="a driven pendulum", xlim=(0, 30))
moves = np.linspace(-0.02, 0.02, 401)
for friction, color in ((nearest, "tab:red"), (between, "tab:blue")):
    along = [loss(stuck + [0, move, 0], table, data, friction) for move in moves]
    value, gradient = descent(stuck, table, data, friction)
    right.plot(stuck[1] + moves, along, color=color, label=friction.__name__)
    right.plot(stuck[1] + moves, value + gradient[1] * moves, "--", color=color)
right.set(xlabel="drive", ylabel="loss", title="the loss and its tangents")
for axis in (left, right):
    axis.legend(loc="lower right")
figure.savefig(options.out / "08_fitting.png", dpi=150)
print(f"\npicture: {options.out / '08_fitting.png'}")

if not np.allclose(fitted, true, rtol=0.02):
    raise SystemExit("a parameter is off by more than 2 %: something is wrong")
