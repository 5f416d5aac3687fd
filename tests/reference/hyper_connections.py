"""Manifold-constrained hyper-connections (Xie et al. 2025, arXiv 2512.24880, section 4; DeepSeek-V4): several residual streams side by
side in the last dimension. Every half of a layer reads a weighted sum of them; what it makes goes to all, which are mixed by a matrix
whose rows and columns add up to 1."""

import torch
import torch.nn.functional as F

EPSILON = 1e-6


def begin(streams, x):
    return x.repeat(1, 1, streams)


def split(streams, x):
    """[batch, sequence, streams, width]"""
    return x.unflatten(-1, (streams, -1))


def arguments(w, name, x):
    """Of the gates, all with a factor of 1 and no bias yet."""
    return F.linear(x, w[name]) / torch.sqrt(x.square().mean(-1, keepdim=True) + EPSILON)


def doubly_stochastic(rows, iterations):
    """Sinkhorn and Knopp's, from rows that are a softmax each."""
    matrix = rows.softmax(-1) + EPSILON
    matrix = matrix / (matrix.sum(-2, keepdim=True) + EPSILON)
    for _ in range(iterations - 1):
        matrix = matrix / (matrix.sum(-1, keepdim=True) + EPSILON)
        matrix = matrix / (matrix.sum(-2, keepdim=True) + EPSILON)
    return matrix


def read(shares, x, streams):
    return (shares[..., None] * split(streams, x)).sum(-2)


def half(w, name, settings, x, branch):
    """From the streams before a half of a layer to those after it."""
    n = settings["streams"]
    of_read, of_write, of_mix = arguments(w, name, x).split([n, n, n * n], dim=-1)
    factors, biases = w[name + ".factor.weight"], w[name + ".bias"].split([n, n, n * n])
    shares = torch.sigmoid(factors[0] * of_read + biases[0]) + EPSILON
    write = 2 * torch.sigmoid(factors[1] * of_write + biases[1])
    mix = doubly_stochastic((factors[2] * of_mix + biases[2]).unflatten(-1, (n, n)), settings["iterations"])
    made = branch(read(shares, x, n))
    mixed = torch.einsum("bsji,bsjh->bsih", mix, split(n, x))
    return (write[..., None] * made[..., None, :] + mixed).flatten(-2)


def end(w, name, settings, x):
    shares = torch.sigmoid(w[name + ".factor.weight"] * arguments(w, name, x) + w[name + ".bias"]) + EPSILON
    return read(shares, x, settings["streams"])
