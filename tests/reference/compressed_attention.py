"""Attention of DeepSeek-V4 (arXiv 2606.19348, section 2.3): all heads share one key, which is its value, too. A query sees those of the
last positions, and keys that stand for several positions each: all that end before it, or those that an indexer chooses, which learns
from attention's distribution over its choices and from nothing else. Keys of the window alone turn by another base."""

import torch

from llama import seen_by
from parts import EPSILON, attend, linear, norm, rotate


def turned(model, kind, x, stride=1, back=False):
    """The last elements of heads [batch, rows, heads, width], by positions `stride` apart."""
    spec = model["compressed_attention"]
    base, yarn = (model["rotary_base"], None) if kind == "sliding_attention" else (spec["rotary_base"], spec.get("yarn"))
    plain, rotated = x.split([x.shape[-1] - spec["rope_dim"], spec["rope_dim"]], dim=-1)
    return torch.cat((plain, rotate(rotated, base, stride, yarn, back)), dim=-1)


def windows(w, name, ratio, overlap, x):
    """Values and scores [batch, windows, places, width]. Where windows overlap a row is two keys wide: a window has the second half of
    its own positions behind the first half of those before it, of which the first window has none."""
    by_window = lambda part: linear(w, name + part, x).unflatten(1, (-1, ratio))
    values, scores = by_window("_value"), by_window("_score") + w[name + "_position.weight"].view(ratio, -1)
    if not overlap:
        return values, scores
    width = values.shape[-1] // 2

    def with_those_before(rows, nothing):
        before = torch.full_like(rows[:, :1, :, :width], nothing)
        return torch.cat((torch.cat((before, rows[:, :-1, :, :width]), dim=1), rows[..., width:]), dim=2)

    return with_those_before(values, 0.0), with_those_before(scores, float("-inf"))


def compressed_keys(w, name, model, kind, x):
    """[batch, windows, 1, width]"""
    overlap = kind == "compressed_sparse_attention"
    ratio = model["compressed_attention"]["sparse_ratio" if overlap else "heavy_ratio"]
    values, scores = windows(w, name, ratio, overlap, x)
    keys = norm(w, name + "_norm", model, (values * scores.softmax(2)).sum(2))
    return turned(model, kind, keys[:, :, None, :], stride=ratio)


def ended(sequence, windows):
    """[query, window]: whether all its positions are the query's own or before it."""
    ratio, place = sequence // windows, torch.arange(windows)
    return (place + 1) * ratio <= torch.arange(1, sequence + 1)[:, None]


def index_scores(w, layer, model, kind, x, query):
    """[batch, query, window], of what the indexer reads, which it gives no gradient to."""
    spec = model["compressed_attention"]
    x, query = x.detach(), query.detach()
    heads, width = spec["index_heads"], spec["index_head_dim"]
    q = turned(model, kind, linear(w, layer + ".index_query", query).unflatten(-1, (heads, width)))
    k = compressed_keys(w, layer + ".index_compress", model, kind, x)[:, :, 0]
    weights = linear(w, layer + ".index_weight", x) * (heads * width) ** -0.5
    return torch.einsum("bqh,bqkh->bqk", weights, torch.einsum("bqhd,bkd->bqkh", q, k).relu())


def choose(scores, top_k):
    """[batch, query, window]: among those that have ended the highest scores, of equal ones the earlier."""
    seen = ended(*scores.shape[1:])
    ranked = scores.masked_fill(~seen, float("-inf")).sort(dim=-1, descending=True, stable=True).indices
    return torch.zeros_like(scores, dtype=torch.bool).scatter(-1, ranked[..., :top_k], True) & seen


def divergence(scores, chosen, q, keys):
    """Of the indexer's distribution over its choices from that of attention, summed over the queries that have any."""
    attention = torch.einsum("bqhd,bkd->bhqk", q, keys[:, :, 0]).detach() * q.shape[-1] ** -0.5
    some = chosen.any(-1)
    masked = lambda t, mask: t.masked_fill(~mask, float("-inf"))
    target = masked(attention, chosen[:, None]).softmax(-1).mean(1)[some]
    own = masked(scores, chosen)[some].log_softmax(-1).masked_fill(~chosen[some], 0.0)
    return (torch.xlogy(target, target) - target * own).sum()


def attention(w, layer, model, kind, x):
    """The output, and what trains the indexer."""
    spec, sequence = model["compressed_attention"], x.shape[1]
    query = norm(w, layer + ".query_norm", model, linear(w, layer + ".query_down", x))
    q = linear(w, layer + ".query_up", query).unflatten(-1, (model["heads"], -1))
    q = turned(model, kind, q / torch.sqrt(q.square().mean(-1, keepdim=True) + EPSILON))
    keys = turned(model, kind, norm(w, layer + ".key_norm", model, linear(w, layer + ".key", x))[:, :, None, :])
    seen, learnt = seen_by("sliding_attention", model, sequence).expand(len(x), -1, -1), 0.0
    if kind != "sliding_attention":
        compressed = compressed_keys(w, layer + ".compress", model, kind, x)
        chosen = ended(sequence, compressed.shape[1]).expand(len(x), -1, -1)
        if kind == "compressed_sparse_attention":
            scores = index_scores(w, layer, model, kind, x, query)
            chosen = choose(scores, spec["index_top_k"])
            learnt = spec["index_loss_coefficient"] * divergence(scores, chosen, q, compressed)
        keys, seen = torch.cat((keys, compressed), dim=1), torch.cat((seen, chosen), dim=-1)
    out = attend(q, keys, keys, seen[:, None], w.get(layer + ".sink.bias"), scale=model.get("attention_scale"))
    turned_back = turned(model, kind, out.unflatten(-1, (model["heads"], -1)), back=True)
    groups = spec["output_groups"]
    by_group = torch.einsum("bsgi,gri->bsgr", turned_back.flatten(-2).unflatten(-1, (groups, -1)),
                            w[layer + ".output_down"].unflatten(0, (groups, -1)))
    return linear(w, layer + ".attention_output", by_group.flatten(-2)), learnt
