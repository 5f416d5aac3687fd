"""Gated delta nets (Yang et al. 2024, arXiv 2412.06464) as Qwen3-Next has them: a state for each value head forgets by one number, and
is corrected by what it would have said of the key. Position by position; nothing is done in chunks here."""

import torch
import torch.nn.functional as F

from parts import linear, rms_norm, short_convolution


def unit(x):
    return x / torch.sqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def delta_rule(q, k, v, strength, log_decay):
    """S_t = exp(g_t) S_(t-1) + w_t k_t (v_t - exp(g_t) S_(t-1)^T k_t)^T and o_t = S_t^T q_t of each head."""
    state, out = torch.zeros(v.shape[0], v.shape[2], k.shape[-1], v.shape[-1], dtype=v.dtype), []
    for t in range(v.shape[1]):
        state = torch.exp(log_decay[:, t])[..., None, None] * state
        wrong = v[:, t] - torch.einsum("bhe,bhep->bhp", k[:, t], state)
        state = state + (strength[:, t, :, None] * k[:, t])[..., None] * wrong[:, :, None, :]
        out.append(torch.einsum("bhe,bhep->bhp", q[:, t], state))
    return torch.stack(out, dim=1)


def mixer(w, layer, model, x):
    sizes, name = model["linear_attention"], layer + ".delta_"
    project = lambda part: F.linear(x, w[name + part])

    def heads(part, count):
        y = short_convolution(project(part), w[f"{name}conv_{part}.taps"]).unflatten(-1, (count, -1))
        return y.repeat_interleave(sizes["value_heads"] // count, dim=2)

    q, k, v = heads("q", sizes["key_heads"]), heads("k", sizes["key_heads"]), heads("v", sizes["value_heads"])
    log_decay = -torch.exp(w[name + "a_log.weight"]) * F.softplus(project("a") + w[name + "dt.bias"])
    out = delta_rule(unit(q) / sizes["key_dim"] ** 0.5, unit(k), v, torch.sigmoid(project("b")), log_decay)
    gate = F.silu(project("z")).view_as(out)
    return linear(w, name + "out", (rms_norm(w[name + "norm.weight"], out) * gate).flatten(2))
