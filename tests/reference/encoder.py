"""A vision encoder before a model (Qwen2-VL, arXiv 2409.12191): layers that see all patches of an image, and a projector."""

import torch
import torch.nn.functional as F

import llama
from parts import linear, mlp, norm


def tokens(w, encoder, patches):
    """[1, tokens, width of the model] of one sequence's patches [positions, numbers of a patch]."""
    model = encoder | {"head_dim": encoder["hidden"] // encoder["heads"], "causal": False, "qk_norm": "none", "rotary_base": 10000}
    model |= {"rotary_full_attention": True, "rotary_share": 1.0, "attention_softcap": 0}
    x = (patches.double() @ w["encoder.patch"].T).view(encoder["images"], encoder["patches"], -1)
    for number in range(encoder["layers"]):
        layer = f"encoder.layer{number}"
        x = x + llama.attention(w, layer, model, "full_attention", norm(w, layer + ".attention_norm", model, x))
        x = x + mlp(w, layer, model, norm(w, layer + ".mlp_norm", model, x))
    merged = norm(w, "encoder.norm", model, x).reshape(1, -1, encoder["merge"] * encoder["hidden"])
    inner = F.gelu(linear(w, "encoder.projector_up", merged), approximate="tanh")
    return linear(w, "encoder.projector_down", inner)
