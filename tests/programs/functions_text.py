"""Calls of NumPy's functions: `x`, `y` are expressions of one shape, `a` an axis, `c` a number."""

from __future__ import annotations

SHAPING = (
    "np.concatenate(({x}, {y}), axis={a})", "np.stack(({x}, {y}), axis={a})",
    "np.hstack(({x}, {y}))", "np.vstack(({x}, {y}))", "np.append({x}, {y})",
    "np.tile({x}, 2)", "np.repeat({x}, 2, axis={a})", "np.repeat({x}, 2)",
    "np.roll({x}, {c}, axis={a})", "np.roll({x}, {c})", "np.flip({x}, {a})", "np.flip({x})",
    "np.diff({x}, axis={a})", "np.triu({x}, {c})", "np.tril({x}, {c})", "np.diag({x})",
    "np.diagonal({x})", "np.moveaxis({x}, 0, -1)", "np.expand_dims({x}, {a})", "np.squeeze({x})",
    "np.rot90({x})", "np.pad({x}, 1)", "np.pad({x}, (1, 2), mode='edge')",
    "np.take({x}, 0, axis={a})", "np.atleast_2d({x})", "np.broadcast_to({x}, (2, *{x}.shape))",
    "{x}.transpose()", "{x}.flatten()", "{x}.squeeze()", "np.array({x})", "{x}[..., None]",
    "np.fliplr({x})", "np.array([{x}, {y}])", "np.ravel({x})", "np.reshape({x}, (-1, 1))",
    "np.column_stack(({x}, {y}))", "np.swapaxes({x}, 0, -1)", "np.matrix_transpose({x})",
)  # fmt: skip
ELEMENTS = (
    "np.zeros_like({x})", "np.full_like({x}, {c})", "np.ones_like({x})", "np.zeros({x}.shape)",
    "np.arange({x}.shape[0])", "np.eye({x}.shape[0])", "np.clip({x}, -1, 2)", "{x}.clip(0, 3)",
    "np.isnan({x})", "np.isfinite({x})", "np.isinf({x})", "np.signbit({x})", "np.nan_to_num({x})",
    "np.logical_not({x})", "np.logical_xor({x}, {y})", "np.round({x})", "np.rint({x})",
    "np.trunc({x})", "np.fmod({x}, {y})", "np.divmod({x}, {y})[0]", "np.power({x}, 2)",
    "np.minimum.outer({x}, {y})", "np.outer({x}, {y})", "np.kron({x}, {y})", "np.reciprocal({x})",
    "np.heaviside({x}, 1)", "np.invert({x})", "np.isclose({x}, {y})", "np.array_equal({x}, {y})",
    "np.select([{x} > 1, {x} < 0], [{x}, {y}], {c})", "np.ldexp({x}, 1)", "np.full({x}.shape, {c})",
    "np.float32({x})", "np.linspace(0, 1, {x}.shape[0])", "np.positive({x})", "np.fabs({x})",
)  # fmt: skip
ORDERED = (
    "np.sort({x}, axis={a})", "np.sort({x}, axis=None)", "np.argsort({x}, axis={a}, kind='stable')",
    "np.ptp({x}, axis={a})", "np.count_nonzero({x})", "np.count_nonzero({x}, axis={a})",
    "np.searchsorted(np.sort({x}.ravel()), {y})", "np.median({x}, axis={a})", "np.nanmax({x})",
    "np.max({x}, initial=2)", "np.min({x}, axis={a}, keepdims=True)", "np.maximum.reduce({x})",
    "len({x})", "{x}.size", "{x}.ndim", "{x}.shape[{a}]", "np.bincount(np.abs({x}.ravel()))",
)  # fmt: skip
SUMS = (
    "np.cumsum({x}, axis={a})", "np.cumsum({x})", "np.cumprod({x}, axis={a})", "({x} @ {y}.T)",
    "np.dot({x}, {y}.T)", "np.inner({x}, {y})", "np.tensordot({x}, {y}, {x}.ndim)",
    "np.einsum('ij,kj->ik', {x}, {y})", "np.einsum('i,i->', {x}, {y})", "np.vdot({x}, {y})",
    "np.einsum('ij->j', {x})", "np.trace({x})", "np.mean({x}, axis={a})", "{x}.mean()",
    "np.var({x}, axis={a})", "np.std({x})", "np.nansum({x}, axis={a})", "np.average({x})",
    "np.sum({x}, axis=(0, -1))", "np.sum({x}, axis={a}, dtype=np.float64)", "np.gradient({x})",
    "np.convolve({x}, {y})", "np.linalg.norm({x})", "np.trapezoid({x})", "np.cross({x}, {y})",
    "np.sum({x}, where={x} > 0)", "np.add.reduce({x})", "np.interp({x}, [0, 1, 2], [3, 1, 2])",
)  # fmt: skip
DYNAMIC = (
    "np.zeros({p})", "np.arange({p})", "np.arange(1, {p}, 2)", "np.full(({p}, 2), {n})",
    "np.ones(({n}, {p}))", "np.roll({x}, {p})", "np.tile({x}, {p})", "np.repeat({x}, {p})",
    "np.repeat({x}, {p}, axis=0)", "{x}.reshape({n}, -1)", "{x}.reshape({p}, -1)", "np.eye({p})",
    "np.eye({n}, {p})", "np.linspace(0, 1, {p})", "np.triu({x}, {p})", "np.diag({x}, {p})",
    "{x} * ({p})", "{x} + np.arange({n})", "np.pad({x}, {p})", "np.take({x}, {p}, axis=0)",
    "{x} ** ({p})", "np.power({x}, {p})", "np.cumsum({x}, axis={p})", "np.sum({x}, axis={p})",
    "np.broadcast_to({x}, ({p}, *{x}.shape))", "{x} / {n}", "np.split({x}, [{p}])[0]",
    "np.array_split({x}, {p})[0]", "{x} % ({p})", "{x} // ({p})", "np.diff({x}, {p})",
    "np.where({p} > 2, {x}, 0)", "({x} if {p} > 2 else {x} * 2)", "np.clip({x}, 0, {p})",
    "np.array([{p}, {n}, 1])", "np.full({n}, {p})", "np.round({x}, {p})", "np.delete({x}, {p})",
    "np.insert({x}, {p}, 1)", "np.flip({x}, {p})", "{x}[np.arange({n}) % ({p})]",
    "np.concatenate([{x}] * ({p}))", "np.stack([{x} * t for t in range({p})])",
    "sum([t * {n} for t in range({p})])", "np.tri({p})", "np.tri({n}, k={p})",
    "np.bincount(np.arange({n}), minlength={p})", "np.indices(({n}, {p}))", "np.vander({x}, {p})",
)  # fmt: skip
"""Calls in which `p` is an integer and `n` a size of `x` that only a call knows."""
EXACT = (*SHAPING, *SHAPING, *ELEMENTS, *ORDERED)
