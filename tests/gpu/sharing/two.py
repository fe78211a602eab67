"""What only some packages have, and two packages in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..jobs import NotAsked
from .arrays import AXPY, PLUS
from .packages import CuPy, Jax, Package, Torch
from .said import on, refused, same


def arrays_that_track_gradients_are_refused() -> None:
    package = Torch()
    x = package.array(np.ones(3)).requires_grad_()
    told = refused("CD0701", on(PLUS), x)
    assert "is not shared" in told, told
    same(on(PLUS)(x.detach()), np.full(3, 2.0))


def two_packages_in_one_call() -> None:
    for one, other in ((CuPy(), Torch()), (Torch(), CuPy())):
        _written_by_one(one, other)


def what_jax_has_is_added_to_what_torch_has() -> None:
    _added(Torch(), Jax())


def what_jax_has_is_added_to_what_cupy_has() -> None:
    _added(CuPy(), Jax())


def _written_by_one(one: Package, other: Package) -> None:
    n, f = 4000, on(AXPY)
    y, x = one.array(np.ones(n)), other.array(np.zeros(n))
    f(y, x, 1.0)
    other.late(x, 2.0)
    f(y, x, 1.0)
    other.late(x, 5.0)
    same(one.host(y), np.full(n, 3.0), f"{one.name} and {other.name}")


def _added(one: Package, other: Package) -> None:
    y, x = one.array(np.ones(100)), other.array(np.arange(100.0))
    on(AXPY)(y, x, 3.0)
    same(one.host(y), 1 + 3 * np.arange(100.0))


def a_result_of_one_is_taken_by_all() -> None:
    data = np.arange(64.0)
    made = []
    for package in (CuPy, Torch, Jax):
        try:
            made.append(package())
        except NotAsked:
            continue
    if len(made) < 2:
        raise NotAsked("there are no two packages")
    r = on(PLUS)(made[0].array(data))
    for package in made:
        for take in package.takes().values():
            taken = take(r)
            assert package.pointer(taken) == r.address
            same(package.host(taken), data + 1)


CHECKS: Mapping[str, Callable[[], None]] = {
    "arrays that track gradients are refused": arrays_that_track_gradients_are_refused,
    "two packages in one call": two_packages_in_one_call,
    "what jax has is added to what torch has": what_jax_has_is_added_to_what_torch_has,
    "what jax has is added to what cupy has": what_jax_has_is_added_to_what_cupy_has,
    "a result of one is taken by all": a_result_of_one_is_taken_by_all,
}
