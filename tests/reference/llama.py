"""Llama: RMSNorm, rotary positions, grouped-query attention, no biases; and what later models add to its attention."""

import torch
import torch.nn.functional as F

from parts import attend, causal_mask, linear, rms_norm, rotate


def embed(w, tokens):
    return w["embedding"][tokens.long()]


def seen_by(kind, model, sequence):
    """[query, key]: what queries of such a layer see."""
    seen, place = causal_mask(sequence), torch.arange(sequence)
    if kind == "sliding_attention":
        return seen & (place[:, None] - place < model["window"])
    if kind == "chunked_attention":
        return seen & (place[:, None] // model["attention_chunk"] == place // model["attention_chunk"])
    return seen if model["causal"] else torch.ones_like(seen)


def rotated(kind, model, x):
    """Some of a head's first elements, those of full attention perhaps not at all."""
    if kind in ("full_attention", "attention") and not model["rotary_full_attention"]:
        return x
    base = model.get("sliding_rotary_base", model["rotary_base"]) if kind == "sliding_attention" else model["rotary_base"]
    width = round(model["rotary_share"] * x.shape[-1])
    return torch.cat((rotate(x[..., :width], base), x[..., width:]), dim=-1)


def attention(w, layer, model, kind, x):
    batch, sequence, _ = x.shape
    parts = [w[layer + part] for part in (".q", ".k", ".v")]  # as Qwen2 with biases
    projected = F.linear(x, torch.cat(parts), w.get(layer + ".qkv.bias")).split([len(part) for part in parts], dim=-1)
    heads = lambda t: t.view(batch, sequence, -1, model["head_dim"])

    def query_or_key(y, weight):
        if model["qk_norm"] == "all":  # OLMo 2 (arXiv 2501.00656, section 3.3.2): all heads of a token as one
            y = rms_norm(w[layer + weight], y)
        y = heads(y)
        if model["qk_norm"] == "head":  # Qwen3 (arXiv 2505.09388, section 2)
            y = rms_norm(w[layer + weight], y)
        return rotated(kind, model, y) if model["rotary"] else y

    q, k = query_or_key(projected[0], ".query_norm.weight"), query_or_key(projected[1], ".key_norm.weight")
    out = attend(q, k, heads(projected[2]), seen_by(kind, model, sequence), w.get(layer + ".sink.bias"),
                 model["attention_softcap"], model.get("attention_scale"))
    if model.get("attention_gate"):  # Qwen3-Next: of every element of the heads' outputs
        out = out * torch.sigmoid(F.linear(x, w[layer + ".attention_gate"]))
    return linear(w, layer + ".attention_output", out)
