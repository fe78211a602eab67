"""The same elements under other axes."""

from __future__ import annotations

import pytest

from .numpy_oracle import assert_same_as_numpy

EXPRESSIONS = (
    "x.T",
    "np.transpose(t)",
    "t.transpose(1, 0, 2)",
    "np.transpose(t, (2, 0, 1))",
    "t.swapaxes(0, -1)",
    "np.moveaxis(t, 0, -1)",
    "np.moveaxis(t, [0, 1], [2, 0])",
    "np.expand_dims(x, 1)",
    "np.expand_dims(x, (0, -1))",
    "np.squeeze(x[:1])",
    "x[:, :1].squeeze(1)",
    "np.atleast_2d(v)",
    "np.atleast_3d(x)",
    "np.atleast_1d(s)",
    "np.broadcast_to(v, (3, 4))",
    "np.flip(x)",
    "np.flip(x, 0)",
    "np.fliplr(x)",
    "np.flipud(x)",
    "np.rot90(x)",
    "np.rot90(x, 2)",
    "np.rot90(x, -1)",
    "m.diagonal(-1)",
    "np.diagonal(t, axis1=1, axis2=2)",
    "np.split(v, 2)",
    "np.array_split(v, 3)",
    "np.split(x, [1], axis=0)",
    "np.linalg.diagonal(m)",
    "np.flip(x, (0, 1))",
    "np.permute_dims(t, (1, 0, 2))",
    "np.flipud(np.fliplr(x))",
)


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_it_is_what_numpy_says(body: str) -> None:
    assert_same_as_numpy(body)
