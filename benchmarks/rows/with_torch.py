"""With PyTorch, eager and compiled: the library's own functions."""

import torch
import torch.nn.functional as F


def softmax(y, x):
    return torch.softmax(x, dim=1, out=y)


def compiled_softmax(y, x):
    """Without `out=`, for the compiler to fuse."""
    return torch.softmax(x, dim=1)


def layer_norm(y, x, gain, shift, epsilon):
    """The library's own, which has no `out=`."""
    return F.layer_norm(x, (x.shape[1],), gain, shift, epsilon)
