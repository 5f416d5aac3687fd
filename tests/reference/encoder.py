"""A vision encoder before a model (Qwen2-VL, arXiv 2409.12191; Gemma 3, arXiv 2503.19786; Llama 4): layers that see all patches of
an image, and a projector."""

import torch
import torch.nn.functional as F

import llama
from parts import linear, mlp, norm


def embedded(w, encoder, model, patches):
    """[images, rows, width]: patches, each image's class token behind them, with their positions, normed."""
    x = (patches.double() @ w["encoder.patch"].T).view(encoder["images"], encoder["patches"], -1)
    if encoder["patch_bias"]:
        x = x + w["encoder.patch.bias"].flatten()
    if encoder["class_token"]:
        x = torch.cat([x, w["encoder.class_token"].expand(encoder["images"], 1, -1)], dim=1)
    if encoder["learned_positions"] > 0:
        x = x + w["encoder.positions"][: x.shape[1]]
    return norm(w, "encoder.first_norm", model, x) if encoder["first_norm"] else x


def tokens(w, encoder, patches, norm_of_model):
    """[1, tokens, width of the model] of one sequence's patches [positions, numbers of a patch]."""
    model = encoder | {"head_dim": encoder["hidden"] // encoder["heads"], "causal": False, "qk_norm": "none", "rotary_base": 10000}
    model |= {"rotary_full_attention": True, "rotary_share": 1.0, "attention_softcap": 0}
    x = embedded(w, encoder, model, patches)
    for number in range(encoder["layers"]):
        layer = f"encoder.layer{number}"
        x = x + llama.attention(w, layer, model, "full_attention", norm(w, layer + ".attention_norm", model, x))
        x = x + mlp(w, layer, model, norm(w, layer + ".mlp_norm", model, x))
    seen = norm(w, "encoder.norm", model, x)[:, : encoder["patches"]]
    windows = seen.reshape(1, -1, encoder["merge"], encoder["hidden"])
    y = windows.mean(dim=2) if encoder["pool"] else windows.flatten(start_dim=2)
    if encoder["projector_norm"]:
        y = norm(w, "encoder.projector_norm", model | {"norm": norm_of_model}, y)
    for number in range(len(encoder["projector"]) + 1):
        if number > 0:
            y = F.gelu(y, approximate="tanh")
        y = linear(w, f"encoder.projector{number}", y)
    return y
