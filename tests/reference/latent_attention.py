"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): keys and values of all heads come from one latent of a
token; a part of the key that carries the position comes from the token itself, and all heads share it.

Sparse (DeepSeek-V3.2, arXiv 2512.02556, section 2.1): a query attends to the keys alone that an indexer scores highest. The indexer
learns from attention's distribution, and from nothing else; nothing learns from it."""

import torch
import torch.nn.functional as F

from llama import seen_by
from parts import EPSILON, attend, linear, norm, rotate


def index_scores(w, layer, model, x, query):
    """[batch, queries, keys], of what the indexer reads, which it gives no gradient to."""
    indexer, rope, base = model["indexer"], model["mla"]["rope_dim"], model["rotary_base"]
    x, query = x.detach(), query.detach()
    turned = lambda t: torch.cat((rotate(t[..., :rope], base), t[..., rope:]), dim=-1)
    q = turned(linear(w, layer + ".index_query", query).view(*x.shape[:2], indexer["heads"], indexer["head_dim"]))
    k = linear(w, layer + ".index_key", x)
    k = F.layer_norm(k, k.shape[-1:], w[layer + ".index_key_norm.weight"], w[layer + ".index_key_norm.bias"], EPSILON)
    k = turned(k[:, :, None, :])[:, :, 0]
    weights = linear(w, layer + ".index_weight", x) * (indexer["heads"] * indexer["head_dim"]) ** -0.5
    return torch.einsum("bqh,bqkh->bqk", weights, torch.einsum("bqhd,bkd->bqkh", q, k).relu())


def attend_chosen(model, scores, q, k, v):
    """Attention to the chosen keys, and the divergence of the indexer's distribution from attention's, summed over the queries."""
    indexer, sequence = model["indexer"], q.shape[1]
    later = torch.ones(sequence, sequence, dtype=torch.bool).triu(1)
    ranked = scores.masked_fill(later, float("-inf")).sort(dim=-1, descending=True, stable=True).indices
    hidden = torch.ones_like(scores, dtype=torch.bool).scatter(-1, ranked[..., : indexer["top_k"]], False) | later
    attention = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    masked = lambda t, mask: t.masked_fill(mask, float("-inf"))
    out = torch.einsum("bhqk,bkhd->bqhd", masked(attention, hidden[:, None]).softmax(-1), v).flatten(2)
    learnt = hidden if indexer["sparse_loss"] else later.expand_as(hidden)
    target = masked(attention.detach(), learnt[:, None]).softmax(-1).mean(1)
    own = masked(scores, learnt).log_softmax(-1).masked_fill(learnt, 0.0)
    return out, (torch.xlogy(target, target) - target * own).sum()


def attention(w, layer, model, kind, x):
    """The output, and what trains the indexer."""
    mla, base = model["mla"], model["rotary_base"]
    batch, sequence, _ = x.shape
    heads = lambda t: t.view(batch, sequence, model["heads"], -1)

    query = norm(w, layer + ".query_norm", model, linear(w, layer + ".query_down", x)) if mla["q_rank"] else x
    q, q_rope = heads(linear(w, layer + ".query_up", query)).split([mla["nope_dim"], mla["rope_dim"]], dim=-1)

    latent = norm(w, layer + ".latent_norm", model, linear(w, layer + ".latent_down", x))
    k, v = heads(linear(w, layer + ".latent_up", latent)).split([mla["nope_dim"], mla["v_dim"]], dim=-1)
    k_rope = rotate(linear(w, layer + ".key_rope", x)[:, :, None, :], base).expand(-1, -1, model["heads"], -1)

    q, k = torch.cat((q, rotate(q_rope, base)), dim=-1), torch.cat((k, k_rope), dim=-1)
    if "indexer" not in model:
        return linear(w, layer + ".attention_output", attend(q, k, v, seen_by(kind, model, sequence))), 0.0
    out, divergence = attend_chosen(model, index_scores(w, layer, model, x, query), q, k, v)
    return linear(w, layer + ".attention_output", out), model["indexer"]["loss_coefficient"] * divergence
