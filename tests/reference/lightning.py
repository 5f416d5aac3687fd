"""Lightning attention (Qin et al. 2024, arXiv 2401.04658) as MiniMax-Text-01 has it: a state for each head, which fades by a
number of the head and of the layer. Position by position; nothing is done in chunks here."""

import torch
import torch.nn.functional as F

from parts import linear, rms_norm


def fading_attention(q, k, v, rate):
    """S_t = exp(-r) S_(t-1) + k_t v_t^T and o_t = S_t^T q_t of each head."""
    state, out = torch.zeros(v.shape[0], v.shape[2], k.shape[-1], v.shape[-1], dtype=v.dtype), []
    for t in range(v.shape[1]):
        state = torch.exp(-rate)[:, None, None] * state + k[:, t, :, :, None] * v[:, t, :, None, :]
        out.append(torch.einsum("bhe,bhep->bhp", q[:, t], state))
    return torch.stack(out, dim=1)


def rates(heads, layer, layers, dtype):
    """Of the heads of a layer: 2^(-8 h / heads), from h = 1 on, the less the later the layer."""
    of_layer = 1 - layer / (layers - 1 + 1e-5) + 1e-5
    return of_layer * 2.0 ** (-8 * torch.arange(1, heads + 1, dtype=dtype) / heads)


def mixer(w, number, model, x):
    heads, name = model["lightning_attention"]["heads"], f"layer{number}.lightning_"
    q, k, v = (F.silu(F.linear(x, w[name + part])).unflatten(-1, (heads, -1)) for part in "qkv")
    out = fading_attention(q, k, v, rates(heads, number, model["layers"], x.dtype)).flatten(2)
    gate = torch.sigmoid(F.linear(x, w[name + "gate"]))
    return linear(w, name + "out", gate * rms_norm(w[name + "norm.weight"], out, epsilon=1e-6))
