"""Llama: RMSNorm, rotary positions, grouped-query attention and a SwiGLU MLP, no biases."""

import torch.nn.functional as F

from parts import attend, linear, rotate


def embed(w, tokens):
    return w["embedding"][tokens.long()]


def attention(w, layer, model, x):
    batch, sequence, _ = x.shape
    heads = lambda part: linear(w, layer + part, x).view(batch, sequence, -1, model["head_dim"])
    q, k = (rotate(heads(part), model["rotary_base"]) for part in (".q", ".k"))
    return linear(w, layer + ".attention_output", attend(q, k, heads(".v"), model["causal"]))


def mlp(w, layer, x):
    return linear(w, layer + ".down", F.silu(linear(w, layer + ".gate", x)) * linear(w, layer + ".up", x))
