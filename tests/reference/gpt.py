"""GPT: LayerNorm, learned positions, multi-head attention and a GELU MLP with biases, the token table as head."""

import torch
import torch.nn.functional as F

from llama import seen_by
from parts import attend, linear


def embed(w, tokens):
    x = w["embedding"][tokens.long()]
    return x + w["positions"][: tokens.shape[1]] if "positions" in w else x


def attention(w, layer, model, kind, x):
    batch, sequence, _ = x.shape
    heads = lambda t: t.view(batch, sequence, model["heads"], model["head_dim"])
    weight = torch.cat([w[layer + part] for part in (".q", ".k", ".v")])
    q, k, v = F.linear(x, weight, w[layer + ".qkv.bias"]).chunk(3, dim=-1)
    return linear(w, layer + ".attention_output", attend(heads(q), heads(k), heads(v), seen_by(kind, model, sequence)))
