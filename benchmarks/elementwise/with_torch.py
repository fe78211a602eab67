"""With PyTorch, eager and compiled: `out=` where there is one, new tensors where there is none."""

import torch


def saxpy(z, x, y, a):
    """One pass."""
    return torch.add(y, x, alpha=a, out=z)


def _cdf(d):
    return 0.5 + 0.5 * torch.erf(d * 0.7071067811865476)


def black_scholes(call, put, spot, strike, years, rate, sigma):
    """New tensors for all steps."""
    spread = sigma * torch.sqrt(years)
    d1 = (torch.log(spot / strike) + (rate + 0.5 * sigma * sigma) * years) / spread
    later = strike * torch.exp(-rate * years)
    price = spot * _cdf(d1) - later * _cdf(d1 - spread)
    return price, price - spot + later


def mandelbrot(count, x, y, rounds):
    """All rounds at every point."""
    real, imaginary = torch.broadcast_tensors(x[None, :], y[:, None])
    re, im = real, imaginary
    total = torch.zeros_like(count)
    for _ in range(rounds):
        inside = re * re + im * im <= 4
        total = total + inside
        new = torch.where(inside, re * re - im * im + real, re)
        re, im = new, torch.where(inside, 2 * re * im + imaginary, im)
    return total


@torch.compile(dynamic=False, fullgraph=True)
def _round(count, re, im, x, y):
    inside = re * re + im * im <= 4
    count += inside
    new = re * re - im * im + x
    im.copy_(2 * re * im + y)
    re.copy_(new)


def stepped_mandelbrot(count, x, y, rounds):
    """One compiled round, called again and again; what has left runs off to infinity."""
    re, im = (part.clone() for part in torch.broadcast_tensors(x[None, :], y[:, None]))
    count.zero_()
    for _ in range(rounds):
        _round(count, re, im, x, y[:, None])


def mandelbrot_exit(count, x, y, rounds):
    """Points that have left are taken out after each round."""
    real, imaginary = (t.flatten() for t in torch.broadcast_tensors(x[None, :], y[:, None]))
    re, im, where = real, imaginary, torch.arange(real.numel())
    count.zero_()
    flat = count.view(-1)
    for _ in range(rounds):
        inside = re * re + im * im <= 4
        re, im, where = re[inside], im[inside], where[inside]
        real, imaginary = real[inside], imaginary[inside]
        flat[where] += 1
        re, im = re * re - im * im + real, 2 * re * im + imaginary


NOT_COMPILED = {"mandelbrot_exit": "sizes that depend on data are not compiled into one graph"}
