"""With PyTorch, eager and compiled: all pairs at once, as far as memory allows."""

import torch

CHUNK = 512


def _pull(some, p, mass, soft):
    d = p.T[:, None, :] - some.T[:, :, None]
    r = (d * d).sum(dim=0) + soft
    w = mass / (r * torch.sqrt(r))
    return (d * w).sum(dim=2).T


def nbody(force, p, mass, soft):
    """Some rows of the pairs at a time."""
    for first in range(0, len(p), CHUNK):
        some = slice(first, first + CHUNK)
        force[some] = _pull(p[some], p, mass, soft)


def differentiable_nbody(force, p, mass, soft):
    """Some rows of the pairs at a time, put together at the end."""
    return torch.cat([_pull(some, p, mass, soft) for some in p.split(CHUNK)])


def compiled_differentiable_nbody(force, p, mass, soft):
    """All pairs at once, which the compiler does not store."""
    return _pull(p, p, mass, soft)


def compiled_nbody(force, p, mass, soft):
    """All pairs at once, which the compiler does not store."""
    return _pull(p, p, mass, soft)


def pairwise(y, a, b):
    """The library's own."""
    return torch.cdist(a, b)
