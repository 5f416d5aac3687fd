"""GPT: LayerNorm, learned positions, multi-head attention and a GELU MLP with biases, the token table as head."""

import torch
import torch.nn.functional as F

from parts import attend, linear


def embed(w, tokens):
    return w["embedding"][tokens.long()] + w["positions"][: tokens.shape[1]]


def attention(w, layer, model, x):
    batch, sequence, _ = x.shape
    heads = lambda t: t.view(batch, sequence, model["heads"], model["head_dim"])
    weight = torch.cat([w[layer + part] for part in (".q", ".k", ".v")])
    q, k, v = F.linear(x, weight, w[layer + ".qkv.bias"]).chunk(3, dim=-1)
    return linear(w, layer + ".attention_output", attend(heads(q), heads(k), heads(v), model["causal"]))


def mlp(w, layer, x):
    return linear(w, layer + ".down", F.gelu(linear(w, layer + ".up", x), approximate="tanh"))
