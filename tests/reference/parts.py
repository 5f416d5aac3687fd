"""What every family is made of. Activations are [batch, sequence, width], heads [batch, sequence, heads, width]."""

import math

import torch
import torch.nn.functional as F

EPSILON = 1e-5
ACTIVATIONS = {
    "silu": F.silu,
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "squared-relu": lambda x: F.relu(x).square(),
    "quick-gelu": lambda x: x * torch.sigmoid(1.702 * x),
}


def linear(w, name, x):
    """x times the matrix `name`, transposed, plus its bias where it has one."""
    return F.linear(x, w[name], w.get(name + ".bias"))


def rms_norm(weight, x, epsilon=EPSILON):
    return weight * x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon)


def norm(w, name, model, x):
    if model["norm"] == "layer":
        return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], EPSILON)
    return rms_norm(w[name + ".weight"], x)


def stretched(speed, base, yarn):
    """YaRN (Peng et al. 2023, arXiv 2309.00071, section 3.2): what turns rarely in the original positions turns slower. The ends of the
    ramp between that and what turns often are whole numbers, as in DeepSeek's inference/model.py."""
    width = 2 * len(speed)
    pair_of = lambda turns: width * math.log(yarn["original_positions"] / (turns * 2 * math.pi)) / (2 * math.log(base))
    low, high = max(math.floor(pair_of(yarn["beta_fast"])), 0), min(math.ceil(pair_of(yarn["beta_slow"])), width - 1)
    share = ((torch.arange(len(speed), dtype=speed.dtype) - low) / (high - low or 0.001)).clamp(0, 1)
    return speed * (1 - share) + speed / yarn["factor"] * share


def rotate(x, base, stride=1, yarn=None, back=False):
    """Rotary positions: elements i and i + d/2 of a head turn by position / base^(2i/d). Rows may be `stride` positions apart."""
    sequence, width = x.shape[1], x.shape[-1]
    speed = base ** (-torch.arange(0, width, 2, dtype=x.dtype) / width)
    if yarn:
        speed = stretched(speed, base, yarn)
    angle = torch.arange(sequence, dtype=x.dtype)[:, None] * (-stride if back else stride) * speed
    cos, sin = angle.cos()[None, :, None, :], angle.sin()[None, :, None, :]
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def causal_mask(sequence):
    """[query, key]: whether the query sees the key."""
    return torch.ones(sequence, sequence, dtype=torch.bool).tril()


def attend(q, k, v, seen, sink=None, softcap=0, scale=None):
    """softmax(scale q k^T) v of each head, by 1 / sqrt(width) unless said otherwise, over the keys that are seen; with fewer key heads, neighbouring query heads share
    one. A head's sink is a score beside those of the keys, of no value. Heads side by side."""
    shared_by = q.shape[2] // k.shape[2]
    k, v = (t.repeat_interleave(shared_by, dim=2) for t in (k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * (scale or q.shape[-1] ** -0.5)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.masked_fill(~seen, float("-inf"))
    if sink is not None:
        scores = torch.cat((scores, sink[None, :, None, None].expand(*scores.shape[:3], 1)), dim=-1)
    shares = scores.softmax(-1)[..., : k.shape[1]]
    return torch.einsum("bhqk,bkhd->bqhd", shares, v).flatten(2)


def mlp(w, layer, model, x):
    """With gates the function is of one half, by which the other is multiplied; both may have a limit (gpt-oss)."""
    function = ACTIVATIONS[model["activation"]]
    up = linear(w, layer + ".up", x)
    if not model["gated"]:
        return linear(w, layer + ".down", function(up))
    gate = linear(w, layer + ".gate", x)
    if limit := model.get("activation_limit"):
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return linear(w, layer + ".down", function(gate) * (up + model.get("activation_offset", 0)))


def short_convolution(x, taps, bias=None):
    """Of each channel alone, over the positions up to its own (Gu & Dao 2023, arXiv 2312.00752, section 3.4), then SiLU."""
    channels, width = taps.shape
    padded = F.pad(x.transpose(1, 2), (width - 1, 0))
    return F.silu(F.conv1d(padded, taps[:, None, :], bias, groups=channels)).transpose(1, 2)


def cross_entropy(logits, labels):
    """The sum over all tokens."""
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten().long(), reduction="sum")
