"""Mamba-2 (Dao & Gu 2024, arXiv 2405.21060, section 7): one state for each head, which decays by one number and is updated position
by position. Nothing is done in chunks here."""

import torch
import torch.nn.functional as F

from parts import linear, rms_norm, short_convolution


def scan(x, b, c, step, decay):
    """x [.., heads, width], b and c [.., heads, state], step [.., heads]: h_t = exp(step decay) h_(t-1) + step b_t x_t^T and
    y_t = c_t^T h_t."""
    state, out = torch.zeros(x.shape[0], x.shape[2], b.shape[-1], x.shape[-1], dtype=x.dtype), []
    for t in range(x.shape[1]):
        gone = torch.exp(step[:, t] * decay)[..., None, None]
        state = gone * state + (step[:, t, :, None] * b[:, t])[..., None] * x[:, t, :, None, :]
        out.append(torch.einsum("bhn,bhnp->bhp", c[:, t], state))
    return torch.stack(out, dim=1)


def mixer(w, layer, model, x):
    mamba, name = model["mamba"], layer + ".mamba_"
    batch, sequence, _ = x.shape
    heads, groups = mamba["heads"], mamba["groups"]

    def convolved(part):
        taps = w[f"{name}conv_{part}.taps"]  # the last column is the bias
        return short_convolution(F.linear(x, w[name + part]), taps[:, :-1], taps[:, -1])

    by_head = lambda t: t.view(batch, sequence, groups, -1).repeat_interleave(heads // groups, dim=2)
    values = convolved("x").view(batch, sequence, heads, -1)
    step = F.softplus(F.linear(x, w[name + "dt"]) + w[name + "dt.bias"])
    y = scan(values, by_head(convolved("b")), by_head(convolved("c")), step, -torch.exp(w[name + "a_log.weight"]))
    y = (y + w[name + "skip.weight"][:, None] * values).flatten(2) * F.silu(F.linear(x, w[name + "z"]))
    by_group = lambda t: t.unflatten(-1, (groups, -1))  # each is normalised by itself
    return linear(w, name + "out", rms_norm(by_group(w[name[:-1] + "_norm.weight"]), by_group(y)).flatten(2))
