"""Tutorial 4: the digits again, on two streams, with gradients merged from one to the other.

    python3 tutorials/start.py 4

A plain call does one thing and waits for it. Here two halves of a batch are worked on at the same
time, each on a stream: a queue of work with a thread of its own. First everything is done by
hand, then by a plan, which finds the streams by itself, then by the driver of whole batches.
"""

import numpy as np
from sklearn.datasets import load_digits

import plusequals as pe
from plusequals import cd

# --- One layer ----------------------------------------------------------------------------------
#
# One layer is enough to see how streams work together: the scores of ten classes, softmax, and the
# gradient of the mean loss. `scale` is one divided by the size of the whole batch, so that the
# gradients of the parts add up to the gradient of the whole.


@cd
def gradient(w, b, x, y, scale):
    z[n, c] = sum(x[n, i] * w.value[i, c]) + b.value[c]
    top[n] = max(z[n, c])
    e[n, c] = exp(z[n, c] - top[n])
    d[n, c] = (e[n, c] / sum[k](e[n, k]) - where(c == y[n], 1.0, 0.0)) * scale
    w.grad[i, c] = sum(x[n, i] * d[n, c])
    b.grad[c] = sum(d[n, c])


@cd
def descend(w, b, rate):
    w.value -= rate * w.grad
    b.value -= rate * b.grad


# `w.grad.merge` is another stream's version of `w.grad`. It is read from the merge buffer of the
# stream that runs the function; something has to be put there before. One function merges one
# array, so there are two.


@cd
def merge_w(w):
    w.grad += w.grad.merge


@cd
def merge_b(b):
    b.grad += b.grad.merge


# The digits are shuffled once, and the last 360 are held out: nothing learns from them.

digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.data))
x = (digits.data[order] / 16).astype("float32")
y = digits.target[order].astype("int64")
known, held_out = slice(0, 1437), slice(1437, None)

# --- By hand ------------------------------------------------------------------------------------
#
# `compile` reads the function for these tensors. The arrays only say what a call will give. What
# comes back belongs to no device; `link` puts it on a stream and makes the arrays that are missing
# there. Both streams only read `w` and `b`, so they share them; each writes a gradient of its own.

w = pe.tensor("w", (64, 10))
b = pe.tensor("b", (10,))
cpu = pe.device("cc")
left, right = cpu.stream(), cpu.stream()
half, scale = 700, 1 / 1400

compiled = gradient.compile(w, b, x[:half], y[:half], scale)
on_left, on_right = compiled.link(left.context()), compiled.link(right.context())
add_w = merge_w.compile(w).link(on_left.context)
add_b = merge_b.compile(b).link(add_w.context)
update = descend.compile(w, b, 0.5).link(add_b.context)

# A call only queues the work. Nobody says who waits for whom: that follows from what each routine
# reads and writes. The merges wait for both gradients, the update for the merges, and the next
# gradients for the update.


def one_step():
    """Queue one step of training."""
    on_left(x[:half], y[:half], scale)
    on_right(x[half : 2 * half], y[half : 2 * half], scale)
    on_right.context.merge_into(add_w, w.grad, mode="streaming")
    add_w()
    on_right.context.merge_into(add_b, b.grad, mode="streaming")
    add_b()
    update()


for _ in range(15):
    one_step()

# Looking at a tensor waits for the work that makes it, and gives the newest version. It changes no
# array, so it may be done anywhere in a program without changing what is computed later.


def right_answers(w, b):
    """Return the share of the held-out digits that is read correctly."""
    scores = x[held_out] @ w.numpy() + b.numpy()
    return float((scores.argmax(axis=1) == y[held_out]).mean())


by_hand = right_answers(w, b)
print(f"two streams by hand: {by_hand:.1%} of the held-out digits read correctly")
gradients = f"{on_left.context.numpy(b.grad)[:2]} and {on_right.context.numpy(b.grad)[:2]}"
print(f"each stream has a gradient of its own: {gradients} ...")
print(f"memory of {cpu.name}: {cpu.used_memory} bytes")

# --- By a plan ----------------------------------------------------------------------------------
#
# In the `with` of a plan the same calls are recorded instead of run. The plan looks at what each
# of them reads and writes, and says which stream each is on, what it waits for, and why. It runs
# as often as it is called, on streams of its own: the two gradients side by side, then the merges.

with pe.plan(name="step") as step:
    one_step()
print(step)
for _ in range(15):
    step()
by_plan = right_answers(w, b)
print(f"two streams by a plan: {by_plan:.1%} of the held-out digits read correctly")

# --- By the driver ------------------------------------------------------------------------------
#
# `pe.DataParallel` does the same for any number of streams: it splits the arrays along their first
# axis, merges as a tree, and runs the update once. With four streams the gradients of the last two
# are added to those of the first two, at the same time, and then those of the second to those of
# the first. Streams of several devices may be mixed: `pe.device("cc:1")` has memory of its own.


def train(streams, epochs=15, batch=200):
    """Train new tensors on some streams; return them."""
    w, b = pe.tensor("w", (64, 10)), pe.tensor("b", (10,))
    step = pe.DataParallel(
        gradient, descend, [cpu.stream() for _ in range(streams)], (w.grad, b.grad), (w, b, 0.5)
    )
    for _ in range(epochs):
        for at in range(0, 1400, batch):
            rows = slice(at, at + batch)
            step(w, b, x[rows], y[rows], 1 / batch)
    step.synchronize()
    return w, b


# The split and the tree are fixed by the number of streams, so a run can be repeated bit by bit.
# Another number of streams adds in another order, and differs by rounding only.

one, two, again = train(1), train(2), train(2)
by_driver = right_answers(*two)
same = np.array_equal(two[0], again[0])
print(f"by the driver: {by_driver:.1%} of the held-out digits read correctly")
print(f"two runs on two streams are equal bit by bit: {same}")
print(f"one stream and two differ by at most {np.abs(one[0].numpy() - two[0].numpy()).max():.1e}")
if not same or min(by_hand, by_plan, by_driver) < 0.85 or step.stats()["streams"] != 2:
    raise SystemExit("the streams did not work together as they should")
