"""The memory of arrays that only a plan sees: who may share it, and how little it takes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from plusequals.backends.runtime.memory import Buffer
from plusequals.backends.runtime.plan.arena import (
    ALIGNMENT,
    Arena,
    Lifetime,
    Overlaps,
    arena_of,
    can_share_temporaries,
    lifetimes,
    placed,
    uninitialized,
)
from plusequals.backends.runtime.plan.graph import Resource
from plusequals.backends.runtime.plan.steps import (
    Body,
    Branch,
    Carry,
    Counter,
    Loop,
    Node,
    Predicate,
    Scratch,
    Step,
    conditional_accesses,
    scheduled,
)

ARRAYS = {name: Buffer(name, np.empty(0), None) for name in "abcdefghijklmnop"}
NOTHING = (lambda label, array: array,) * 2
PREDICATE = Predicate(lambda: True, ())


def step(text: str) -> Step:
    """Return the step of a text: `b=ac` writes `b` and reads `a` and `c`."""
    written, _, read = text.partition("=")
    reads, writes = (tuple(ARRAYS[name] for name in names) for names in (read, written))
    return Step(text, "routine", ("cc:0",), reads, writes, lambda _: int, lambda _: int,
                lambda: None)  # fmt: skip


def body(*parts: str | Node, cap: int | None = None) -> Body:
    return scheduled([step(each) if isinstance(each, str) else each for each in parts], cap)


def loop(before: Body, after: Body, **carry: str) -> Loop:
    carries = tuple(Carry(ARRAYS[t], ARRAYS[s], NOTHING, lambda: None) for t, s in carry.items())
    pairs = [(each.target, each.source) for each in carries]
    reads, writes = conditional_accesses(
        (before, after), [r for pair in pairs for r in pair], [s for _, s in pairs]
    )
    return Loop("while", PREDICATE, before, after, carries, Counter("while"), None, reads, writes,
                ("cc:0",))  # fmt: skip


def branch(*bodies: Body, **otherwise: str) -> Branch:
    carries = tuple(
        Carry(ARRAYS[t], ARRAYS[s], NOTHING, lambda: None) for t, s in otherwise.items()
    )
    reads, writes = conditional_accesses(
        bodies, [c.source for c in carries], [c.target for c in carries]
    )
    return Branch("case", PREDICATE, bodies, carries, reads, writes, ("cc:0",))


def arena(made: Body, private: str, size: int = ALIGNMENT) -> Arena:
    arrays = [ARRAYS[name] for name in private]
    return arena_of(dict.fromkeys(arrays, size), lifetimes(made, arrays))


def share(made: Body, one: str, other: str) -> bool:
    arrays = [ARRAYS[one], ARRAYS[other]]
    lives = lifetimes(made, arrays)
    return not Overlaps()(*(lives[each] for each in arrays))


def test_a_chain_takes_two_arrays() -> None:
    made = body("b=a", "c=b", "d=c", "e=d", "f=e")
    assert arena(made, "bcde").size == 2 * ALIGNMENT
    assert share(made, "b", "d") and not share(made, "b", "c")


def test_what_is_computed_side_by_side_has_memory_of_its_own() -> None:
    apart = "b=a", "d=a", "c=b", "e=d", "f=ce"
    assert not share(body(*apart), "b", "d") and not share(body(*apart), "b", "e")
    assert share(body(*apart, cap=1), "b", "f")
    independent = "b=a", "c=b", "e=d", "f=e"
    assert not share(body(*independent), "b", "e"), "one would have to wait for the other"
    assert share(body(*independent, cap=1), "b", "e"), "it waits anyway"


def test_branches_and_parts_of_a_loop_share() -> None:
    either = body("a=", branch(body("b=a", "d=b"), body("c=a", "d=c"), d="a"), "e=d")
    assert share(either, "b", "c") and not share(either, "b", "d")
    parts = body("a=", loop(body("b=a", "d=b"), body("c=d", "d=c")), "e=d")
    assert share(parts, "b", "c") and not share(parts, "c", "d")


def test_a_value_of_the_last_iteration_lives_as_long_as_the_loop() -> None:
    kept = body("a=", "b=", loop(body(), body("c=b", "d=c", "b=d")), "e=b")
    assert not share(kept, "b", "c") and not share(kept, "b", "d")
    own = body("a=", loop(body(), body("c=a", "d=c", "f=d", "e=f")), "g=e")
    assert share(own, "c", "f") and share(own, "a", "g")
    carried = body("a=", "b=", loop(body(), body("c=b", "d=c"), b="d"), "e=d")
    assert not share(carried, "b", "c") and not share(carried, "d", "c")


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (body("a=", "b=a"), ""),
        (body("b=a"), "a"),
        (body("a=a"), "a"),
        (body(loop(body(), body("b=")), "c=b"), "b"),
        (body(loop(body("b="), body()), "c=b"), ""),
        (body("a=", loop(body(), body("b=a"), a="b"), "c=b"), ""),
        (body(branch(body("b="), body("b=")), "c=b"), "b"),
        (body("a=", branch(body("b="), body("b="), b="a"), "c=b"), ""),
        (body("a=", branch(body("b="), body(), b="a"), "c=b"), "b"),
    ],
)
def test_what_is_read_before_it_is_written(made: Body, expected: str) -> None:
    found = uninitialized(made, list(ARRAYS.values()))
    assert [resource.label for resource, _ in found] == list(expected)


def _random_body(rng: random.Random, most: int) -> tuple[Body, str]:
    names = "abcdefghijklmnop"[: rng.randint(2, most)]
    texts = [
        f"{name}={''.join(rng.sample(names[:at], min(at, rng.randint(0, 2))))}"
        for at, name in enumerate(names)
    ]
    return body(*texts, cap=rng.choice((None, 1, 2))), names


def _with_temporaries(made: Body, rng: random.Random) -> Body:
    """Return a body of which about every other step has temporaries."""
    nodes = [
        replace(node, scratch=Scratch(f"of {node.name}", rng.randint(1, 20) * ALIGNMENT))
        if isinstance(node, Step) and rng.random() < 0.5
        else node
        for node in made.nodes
    ]
    return scheduled(nodes, rng.choice((None, 1, 2)))


def _apart(lives: Sequence[Lifetime]) -> list[tuple[int, int]]:
    overlaps = Overlaps()
    return [
        (m, n) for n in range(len(lives)) for m in range(n) if overlaps(lives[m], lives[n])
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_no_array_that_is_needed_lies_on_another_one(seed: int) -> None:
    rng = random.Random(seed)
    made, names = _random_body(rng, 14)
    arrays = [ARRAYS[name] for name in names]
    sizes = {array: rng.choice((1, 8, 64, 100, 1000, 4096)) for array in arrays}
    lives = lifetimes(made, arrays)
    found = arena_of(sizes, lives)
    for m, n in _apart([lives[array] for array in arrays]):
        one, other = sorted((arrays[m], arrays[n]), key=lambda array: found.offsets[array])
        assert found.offsets[one] + sizes[one] <= found.offsets[other]
    assert max(found.offsets[a] + sizes[a] for a in arrays) <= found.size <= sum(
        -(-size // ALIGNMENT) * ALIGNMENT for size in sizes.values()
    )  # fmt: skip


def _sizes(lives: Mapping[Resource, Lifetime], rng: random.Random) -> dict[Resource, int]:
    return {
        name: name.size if isinstance(name, Scratch) else rng.randint(1, 20) * ALIGNMENT
        for name in lives
    }


@pytest.mark.parametrize("seed", range(60))
def test_temporaries_lie_apart_from_what_is_needed_while_they_are(seed: int) -> None:
    rng = random.Random(seed)
    made, names = _random_body(rng, 14)
    outer = body("a=", loop(_with_temporaries(made, rng), _with_temporaries(made, rng)), "b=a")
    made = rng.choice((_with_temporaries(made, rng), _with_temporaries(outer, rng)))
    lives = lifetimes(made, [ARRAYS[name] for name in names])
    sizes = _sizes(lives, rng)
    found, all_ = arena_of(sizes, lives), list(lives)
    for m, n in _apart(list(lives.values())):
        one, other = sorted((all_[m], all_[n]), key=lambda each: found.offsets[each])
        assert found.offsets[one] + sizes[one] <= found.offsets[other]


def test_temporaries_of_steps_in_order_share_memory_with_arrays_that_are_dead_by_then() -> None:
    scratch = Scratch("of b=a", 4 * ALIGNMENT), Scratch("of d=c", 3 * ALIGNMENT)
    steps = [step("a="), step("b=a"), step("c=b"), step("d=c")]
    nodes = [steps[0], replace(steps[1], scratch=scratch[0]), steps[2]]
    made = scheduled([*nodes, replace(steps[3], scratch=scratch[1])], None)
    lives = lifetimes(made, [ARRAYS[name] for name in "abc"])
    sizes = {name: getattr(name, "size", ALIGNMENT) for name in lives}
    assert arena_of(sizes, lives).size == 6 * ALIGNMENT, "a, b, and the temporaries of one step"


def test_with_many_steps_at_once_temporaries_are_not_looked_at() -> None:
    def lives(count: int, cap: int | None) -> dict[Resource, Lifetime]:
        nodes = [replace(step("a="), writes=(), scratch=Scratch("of it", 1)) for _ in range(count)]
        return lifetimes(scheduled(nodes, cap), ())

    assert can_share_temporaries(lives(30, None)) and can_share_temporaries(lives(300, 1))
    assert not can_share_temporaries(lives(300, None))


@pytest.mark.parametrize("temporaries", [False, True])
def test_it_takes_hardly_more_than_the_best_order(temporaries: bool) -> None:
    """Of all orders of up to 8 arrays, by brute force."""
    best_found, taken = 0, 0
    for seed in range(40):
        rng = random.Random(1000 + seed)
        made, names = _random_body(rng, 7)
        made = _with_temporaries(made, rng) if temporaries else made
        lives = lifetimes(made, [ARRAYS[name] for name in names])
        if len(lives) > 8:
            continue
        sizes, all_ = _sizes(lives, rng), list(lives)
        apart: dict[Resource, set[Resource]] = {name: set() for name in lives}
        for m, n in _apart(list(lives.values())):
            apart[all_[m]].add(all_[n])
            apart[all_[n]].add(all_[m])
        orders = itertools.permutations(lives)
        best = sum(sizes.values())
        while best > max(sizes.values()) and (order := next(orders, None)):
            best = min(best, placed(order, sizes, apart)[1])
        found = arena_of(sizes, lives).size
        assert best <= found <= 1.1 * best
        best_found, taken = best_found + best, taken + found
    assert taken <= 1.002 * best_found
