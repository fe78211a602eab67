"""Tutorial 7: a plan, which finds out by itself what may run at once, and for how long.

    python3 tutorials/start.py 7

Two plates cool until nothing changes any more, each as long as it takes; then a choice is made
between them. Written as calls, one thing would wait for another that it does not need. Here the
calls are recorded, in the order in which they are meant, and the plan decides about streams.
"""

import argparse
from pathlib import Path

import numpy as np

import plusequals as pe
from plusequals import cd

parser = argparse.ArgumentParser()
parser.add_argument("--quick", action="store_true", help="small plates")
parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "out")
given = parser.parse_args()
given.out.mkdir(parents=True, exist_ok=True)

# --- One step -----------------------------------------------------------------------------------
#
# A step of a plate reads the old temperatures and writes the new ones: each is the mean of its
# four neighbours, and the rim stays as it is. `most` is how much changed, one number.


@cd
def cool(new, old, most):
    new[...] = old
    new[1:-1, 1:-1] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
    most[0] = np.max(np.abs(new - old))


@cd
def describe(result, plate):
    result[0] = np.mean(plate)


size = 32 if given.quick else 128


def plate(label, heat):
    """Return the arrays of a plate whose left rim is hot: old, new, what changed, what came out."""
    start = np.zeros((size, size))
    start[:, 0] = heat
    old = pe.tensor(f"{label} old", (size, size), dtype="float64", init=start)
    new = pe.tensor(f"{label} new", (size, size), dtype="float64")
    most = pe.tensor(f"{label} change", 1, dtype="float64", init=np.inf)
    return old, new, most, pe.tensor(f"{label} mean", 1, dtype="float64")


# A plan knows tensors: what it computes stays in them, and what it reads is what they hold when it
# runs. The change starts at infinity, so that there is a first step.

first, second = plate("first", 100.0), plate("second", 60.0)
answer = pe.tensor("answer", 1, dtype="float64")

# --- The plan -----------------------------------------------------------------------------------
#
# Inside of the `with` nothing is computed. A Python `while` would ask once, now; `plan.while_` is
# asked in each iteration, with fresh values of what it reads. In each iteration `old` has the value
# that `new` had at the end of the last one: the arrays change places, and nothing is copied.

with pe.plan(name="plates") as plan:
    for name, (old, new, most, result) in (("first", first), ("second", second)):
        with plan.while_(
            lambda count, change: bool(change[0] > 1e-3),
            reads=[most],
            carry={old: new},
            at_most=100_000,
            name=f"cool the {name}",
        ) as loop:
            cool(new, old, most)
        describe(result, new)

    # A branch is chosen by a number: 0 for the first branch, 1 for the second one; a negative
    # number would run none of them.
    with plan.case_of(
        lambda a, b: int(b[0] > a[0]), reads=[first[3], second[3]], name="the warmer one"
    ) as case:
        with case.branch():
            describe(answer, first[1])
        with case.branch():
            describe(answer, second[1])

# --- What it decided ----------------------------------------------------------------------------
#
# The two loops have nothing in common, so they have a stream each. The table says for every node
# what it waits for, and why: `RAW` is a read after a write, of the array named after it.

print(plan)
print(f"\npicture: {plan.save_picture(given.out / '07_plan.png').name}")

# --- Running ------------------------------------------------------------------------------------
#
# `plan()` runs everything and waits. It can be run again: with what the host has written since.

plan()
print(f"means: {first[3].numpy()[0]:.2f} and {second[3].numpy()[0]:.2f}")
print(f"the warmer one has {answer.numpy()[0]:.2f}")

# On a stream a run is one step of it, and the caller goes on. Until it is waited for, or a tensor
# that it writes is looked at, other work may be done here. `run.cancel()` would end it early.

second[0][:, 0] = 200.0
for *_, most, _ in (first, second):
    most[...] = np.inf
run = plan.run(on=pe.device("cc").stream())
print("the caller goes on")
run.wait()
print(f"with more heat on the second one the answer is {answer.numpy()[0]:.2f}")

# --- Memory and time ----------------------------------------------------------------------------
#
# Between two calls there are often values that nobody else looks at. `plan.tensor` makes a tensor
# that only the plan sees: those that are not needed at the same time lie in the same memory. Here
# four of them take the room of two.

smooth = pe.plan(name="smooth")
between = [smooth.tensor(f"between {n}", (size, size), dtype="float64") for n in range(4)]
with smooth:
    for new, old in zip([*between, second[1]], [first[1], *between], strict=True):
        cool(new, old, second[2])
print(f"\n{smooth.memory()}")

# What ran when is seen in a profile; a run that was profiled says what its steps waited for.

with pe.profile():
    run = smooth.run()
print(f"\n{len(run.timeline.works)} steps, the last one:")
print("\n".join(run.explain("cool").splitlines()[-2:]))
