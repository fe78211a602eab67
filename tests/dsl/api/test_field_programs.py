"""Gradients of programs of the field: against differences, and against what is derived by hand."""

from __future__ import annotations

import numpy as np
import pytest

import plusequals as pe

from . import field_programs as field

FIELD = field.FIELD


@pytest.mark.parametrize("name", FIELD)
def test_a_gradient_agrees_with_differences(name: str) -> None:
    function, args, wrt = FIELD[name]
    with pe.override("numpy"):
        report = pe.check_gradient(function, args, wrt, digits=7)
    assert report.digits >= 7, str(report)


def test_cross_entropy_by_hand() -> None:
    x, w, b, labels = FIELD["softmax cross entropy"][1]
    z = np.exp(x @ w + b)
    error = z / z.sum(axis=1, keepdims=True)
    error[np.arange(4), labels] -= 1
    found = pe.gradient(field.cross_entropy, wrt=("x", "w", "b"))(x, w, b, labels)
    for one, other in zip(found, (error @ w.T, x.T @ error, error.sum(axis=0)), strict=True):
        np.testing.assert_allclose(one, other / 4, rtol=1e-12, atol=1e-15)


def test_layer_norm_by_hand() -> None:
    x, gain, bias, weights = FIELD["layer norm"][1]
    scale = 1 / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    normal = (x - x.mean(axis=1, keepdims=True)) * scale
    d = weights * gain
    along = (d * normal).mean(axis=1, keepdims=True)
    d_x = scale * (d - d.mean(axis=1, keepdims=True) - normal * along)
    by_hand = d_x, (weights * normal).sum(axis=0), weights.sum(axis=0)
    found = pe.gradient(field.layer_norm, wrt=("x", "gain", "bias"))(x, gain, bias, weights)
    for one, other in zip(found, by_hand, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-14)


def test_bodies_attract_each_other_by_hand() -> None:
    x, v, m = FIELD["the energy of n bodies"][1]
    away = x[:, None] - x[None]
    cubed = (away**2).sum(axis=2) ** 1.5 + np.eye(5)
    force = (m[:, None, None] * m[None, :, None] * away / cubed[..., None]).sum(axis=1)
    d_x, d_v = pe.gradient(field.n_body, wrt=("x", "v"))(x, v, m)
    np.testing.assert_allclose(d_x, force, rtol=1e-11)
    np.testing.assert_allclose(d_v, m[:, None] * v, rtol=1e-15)


def test_a_gaussian_by_hand() -> None:
    x, mean, a = FIELD["a Gaussian by Cholesky"][1]
    inverse = np.linalg.inv(a @ a.T + np.eye(3))
    z = inverse @ (x - mean)
    d_mean, d_a = pe.gradient(field.gaussian_by_cholesky, wrt=("mean", "a"))(x, mean, a)
    np.testing.assert_allclose(d_mean, -z, rtol=1e-12)
    np.testing.assert_allclose(d_a, (inverse - np.outer(z, z)) @ a, rtol=1e-10)


def test_scattered_rows_add_up() -> None:
    table, words, links = FIELD["an embedding"][1]
    sums = np.zeros((3, 2))
    np.add.at(sums, links, table[words] ** 2)
    d_sums = (1 - np.tanh(sums) ** 2) * sums + np.tanh(sums)
    by_hand = np.zeros((6, 2))
    np.add.at(by_hand, words, 2 * table[words] * d_sums[links])
    found = pe.gradient(field.embedding, wrt="table")(table, words, links)
    np.testing.assert_allclose(found, by_hand, rtol=1e-12, atol=1e-15)
