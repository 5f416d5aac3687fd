"""Mixture of experts. The router's logits choose: a token its top k experts, or each expert its tokens; an expert has so many slots,
and the choices of later tokens that find none are dropped. Or the load is given, and the choices are dealt out to meet it."""

import torch
import torch.nn.functional as F

from parts import linear, mlp


def token_groups(tokens, routing):
    """The numbers of a micro-batch's tokens, position by position, that are routed without regard to the others."""
    place = torch.arange(tokens)
    if (ranks := routing["zigzag"]) > 0:  # rank r of so many holds chunks r and 2 ranks - 1 - r
        size = tokens // (2 * ranks)
        chunk = place // size
        other_end = 2 * (2 * ranks - 1 - chunk) + 1
        place = torch.where(chunk < ranks, 2 * chunk, other_end) * size + place % size
    group = place // (tokens // routing["token_groups"])
    return [(group == g).nonzero().flatten() for g in range(routing["token_groups"])]


def deal(counts, receivers):
    """Gives `counts[i]` of thing i, in their order, to the receivers in turn."""
    things = [thing for thing, count in enumerate(counts) for _ in range(count)]
    return [things[receiver::receivers] for receiver in range(receivers)]


def dealt_choices(routing, tokens, top_k):
    """By token; under a node limit visits of nodes are dealt to the tokens, and in each node its experts to its visits."""
    if routing["node_limit"] == 0:
        return torch.tensor(deal(routing["load"], tokens))
    experts_of_a_visit, size = top_k // routing["node_limit"], len(routing["load"]) // routing["nodes"]
    visits = []
    for first in range(0, len(routing["load"]), size):
        load = routing["load"][first : first + size]
        visits += [[first + expert for expert in hand] for hand in deal(load, sum(load) // experts_of_a_visit)]
    return torch.tensor([sum(visits[token::tokens], []) for token in range(tokens)])


# What gates are shares of, where that is no softmax.
SCORES = {"sigmoid": torch.sigmoid, "sqrtsoftplus": lambda logits: F.softplus(logits).sqrt()}


def scores_of(logits, bias, routing):
    """What tokens choose by."""
    if function := SCORES.get(routing["score_function"]):
        return function(logits) if bias is None else function(logits) + bias
    return logits.softmax(-1) if routing["pre_softmax"] else logits


def hashed_choices(tokens, top_k, experts):
    """A token's number chooses one expert of each of so many equal parts (Roller et al. 2021, arXiv 2106.04426, say by any fixed hash;
    DeepSeek-V4 has a table): by SplitMix64 (Steele, Lea, Flood 2014) of the number, then of the place among its choices."""
    whole = (1 << 64) - 1

    def mix(x):
        x = (x + 0x9E3779B97F4A7C15) & whole
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & whole
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & whole
        return x ^ (x >> 31)

    def choice(token, place):
        first, last = place * experts // top_k, (place + 1) * experts // top_k
        return first + mix(mix(token) ^ place) % (last - first)

    return torch.tensor([[choice(token, place) for place in range(top_k)] for token in tokens.tolist()])


def best_choices(scores, top_k, routing):
    """The top k experts, under a node limit among those of the nodes, or groups, with the best experts."""
    nodes, limit = routing["nodes"], routing["node_limit"]
    if limit > 0:
        by_node = scores.view(len(scores), nodes, -1)
        counted = min(by_node.shape[-1], routing["best_of_node"] or max(1, top_k // limit))
        visited = by_node.topk(counted, dim=-1).values.sum(-1).topk(limit, dim=-1).indices
        allowed = torch.zeros_like(by_node[:, :, 0], dtype=torch.bool).scatter(1, visited, True)
        scores = torch.where(allowed[:, :, None], by_node, torch.tensor(float("-inf"), dtype=scores.dtype)).flatten(1)
    return scores.topk(top_k, dim=-1).indices


def probabilities(logits, routing):
    """Of the balance loss."""
    if routing["score_function"] == "softmax":
        return logits.softmax(-1)
    scores = SCORES[routing["score_function"]](logits)
    return scores / scores.sum(-1, keepdim=True)


def choices_of(logits, bias, top_k, routing, hashed):
    tokens, experts = logits.shape
    if routing["forced"]:
        return dealt_choices(routing, tokens, top_k)
    if hashed is not None:
        return hashed_choices(hashed, top_k, experts)
    return best_choices(scores_of(logits, bias, routing), top_k, routing)


def top_k_gates(logits, bias, top_k, routing, hashed):
    """[tokens, experts] gates of one group, 0 where a token does not go; and 1 where it would. `hashed`: the numbers of tokens by which
    they go, if any."""
    chosen = choices_of(logits, bias, top_k, routing, hashed)
    picked = torch.zeros_like(logits).scatter(1, chosen, 1.0)
    if function := SCORES.get(routing["score_function"]):
        gates = function(logits) * picked
        if top_k > 1:
            gates = gates / gates.sum(-1, keepdim=True)
    elif top_k == 1 or routing["pre_softmax"]:
        gates = logits.softmax(-1) * picked
    else:
        gates = logits.masked_fill(picked == 0, float("-inf")).softmax(-1)
    finds_slot = picked.cumsum(0) <= torch.tensor(routing["slots"])
    return routing["scaling_factor"] * gates * finds_slot, picked.detach()


def expert_choice_gates(logits, routing):
    gates = logits.softmax(-1)
    taken = torch.zeros_like(gates)
    for expert, slots in enumerate(routing["slots"]):
        taken[gates[:, expert].topk(slots).indices, expert] = 1.0
    return gates * taken


def balance_loss(logits, counts, moe, routing):
    """Of tokens whose choices are counted together."""
    return routing["balance"] * moe["experts"] * (probabilities(logits, routing) * (counts / counts.sum())).sum()


def shared(w, layer, model, x):
    """One MLP for every token, which a gate may weight (Qwen2)."""
    out = mlp(w, layer, model, x)
    return torch.sigmoid(F.linear(x, w[layer + ".open"].view(1, -1))) * out if model["moe"].get("shared_gate") else out


def mixture(w, layer, model, routing, x, tokens):
    """The layer's output, what the balance loss (Fedus et al. 2021, equation 4) adds to what is differentiated, and the choices of
    each expert. `tokens`: their numbers [batch, sequence], where these choose."""
    moe = model["moe"]
    numbers = None if tokens is None else tokens.transpose(0, 1).flatten()
    rows = x.transpose(0, 1).flatten(0, 1)  # position by position, as the tokens are routed
    logits = F.linear(rows, w[layer + ".router"].view(-1, rows.shape[-1]), w.get(layer + ".router.logits.bias"))
    gates, balance, choices = torch.zeros_like(logits), 0.0, torch.zeros_like(logits[0])
    picks = torch.zeros_like(logits).detach()
    bias = w.get(layer + ".router.bias")
    for group in token_groups(len(rows), routing):
        if routing["expert_choice"]:
            gates[group] = expert_choice_gates(logits[group], routing)
        else:
            gates[group], picked = top_k_gates(
                logits[group], bias, moe["top_k"], routing, None if numbers is None else numbers[group])
            counts = picked.sum(0)
            if numbers is not None:  # nothing balances these choices
                continue
            if routing["sequences"] == 0:
                balance += balance_loss(logits[group], counts, moe, routing)
            else:
                picks[group] = picked
            choices = choices + counts.detach()
    for sequence in range(0 if numbers is not None else routing["sequences"]):  # whose tokens take turns in the rows
        balance += balance_loss(logits[sequence :: routing["sequences"]], picks[sequence :: routing["sequences"]].sum(0), moe, routing)
    seen = linear(w, layer + ".expert_latent_down", rows) if moe.get("latent") else rows
    out = sum(gates[:, e, None] * mlp(w, f"{layer}.expert{e}", model, seen) for e in range(moe["experts"]))
    if moe.get("latent"):
        out = linear(w, layer + ".expert_latent_up", out)
    out = out.view(x.shape[1], x.shape[0], -1).transpose(0, 1)
    return (out + shared(w, layer + ".shared", model, x) if moe.get("shared_experts") else out), balance, choices
