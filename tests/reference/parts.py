"""What every family is made of. Activations are [batch, sequence, width], heads [batch, sequence, heads, width]."""

import torch
import torch.nn.functional as F

EPSILON = 1e-5


def linear(w, name, x):
    """x times the matrix `name`, transposed, plus its bias where it has one."""
    return F.linear(x, w[name], w.get(name + ".bias"))


def norm(w, name, model, x):
    if model["norm"] == "layer":
        return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], EPSILON)
    return w[name + ".weight"] * x / torch.sqrt((x * x).mean(-1, keepdim=True) + EPSILON)


def rotate(x, base):
    """Rotary positions: elements i and i + d/2 of a head turn by position / base^(2i/d)."""
    sequence, width = x.shape[1], x.shape[-1]
    speed = base ** (-torch.arange(0, width, 2, dtype=x.dtype) / width)
    angle = torch.arange(sequence, dtype=x.dtype)[:, None] * speed
    cos, sin = angle.cos()[None, :, None, :], angle.sin()[None, :, None, :]
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def attend(q, k, v, causal):
    """softmax(q k^T / sqrt(width)) v of each head; with fewer key heads, neighbouring query heads share one. Heads side by side."""
    shared_by = q.shape[2] // k.shape[2]
    k, v = (t.repeat_interleave(shared_by, dim=2) for t in (k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).flatten(2)


def cross_entropy(logits, labels):
    """The sum over all tokens."""
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten().long(), reduction="sum")
