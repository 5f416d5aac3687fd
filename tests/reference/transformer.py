"""A pre-norm decoder of any of the families, and the loss of a global batch."""

import torch

import compressed_attention
import encoder
import experts
import gated_delta
import gpt
import hyper_connections
import latent_attention
import lightning
import llama
import mamba
from parts import cross_entropy, linear, mlp, norm

FURTHER_WEIGHT = 0.3  # of the loss of all further tokens (DeepSeek-V3, arXiv 2412.19437, section 4.2)


# Layers of one half each, where others have both.
MIXERS, FEED_FORWARD = ("mamba", "attention"), ("mlp", "moe")
WITH_STATES = ("linear_attention", "lightning_attention")


def kind_of(model, number):
    """What predicts further tokens has full attention, or beside compressed keys that to a window."""
    kinds = model.get("layer_types")
    if kinds and number < model["layers"]:
        return kinds[number % len(kinds)]
    return "sliding_attention" if "compressed_attention" in model else "full_attention"


def has_experts(model, number):
    kind, moe = kind_of(model, number), model.get("moe", {"experts": 0})
    if kind in FEED_FORWARD:
        return kind == "moe"
    return moe["experts"] > 0 and number >= moe["first_dense_layers"] and (number - moe["first_dense_layers"]) % moe["every"] == 0


class Transformer:
    """One micro-batch at a time: adds up the loss, and what is differentiated beside it."""

    def __init__(self, step, weights):
        self.w, self.model, self.routing = weights, step.model, step.facts.get("routing")
        self.streams = self.model.get("hyper_connections")
        self.inputs = None  # the tokens of a micro-batch
        self.family = gpt if self.model["linear_bias"] else llama
        self.tokens = step.batch["global_batch"] * step.batch["sequence"]
        self.loss, self.balance, self.indexers = 0.0, 0.0, 0.0
        self.choices = {}  # of each expert, by the name of its router's biases

    def layer(self, number, x):
        name, kind = f"layer{number}", kind_of(self.model, number)
        if kind not in FEED_FORWARD:
            factors = "full_attention" if kind.endswith("attention") and kind not in WITH_STATES else "linear_attention"
            x = self.half(name, "attention", factors, x, lambda y: self.mix(number, kind, y))
        if kind not in MIXERS:
            x = self.half(name, "mlp", "mlp", x, lambda y: self.feed_forward(name, number, y))
        return x

    def half(self, layer, which, factors, x, branch):
        """The stream and a branch, each times its factor; the stream goes on from the norm where that is its placement. Or several
        streams."""
        name = which + "_norm"
        if self.streams:
            return hyper_connections.half(
                self.w, f"{layer}.{which}_streams", self.streams, x, lambda y: self.normed(layer, name, y, branch))
        residual = self.model.get("residual", {})
        alpha, beta = (residual.get(f"{factors}_{factor}", 1) for factor in ("alpha", "beta"))
        if self.model["norm_placement"] == "residual":
            x = norm(self.w, f"{layer}.{name}", self.model, x)
            return alpha * x + beta * branch(x)
        return alpha * x + beta * self.normed(layer, name, x, branch)

    def normed(self, layer, name, x, branch):
        """A branch between its norms, of which there may be one before it and one after it."""
        placement = self.model["norm_placement"]
        y = branch(x if placement == "post" else norm(self.w, f"{layer}.{name}", self.model, x))
        return y if placement == "pre" else norm(self.w, f"{layer}.post_{name}", self.model, y)

    def mix(self, number, kind, x):
        name = f"layer{number}"
        if kind == "lightning_attention":
            return lightning.mixer(self.w, number, self.model, x)
        if kind == "mamba":
            return mamba.mixer(self.w, name, self.model, x)
        if kind == "linear_attention":
            return gated_delta.mixer(self.w, name, self.model, x)
        if "mla" not in self.model and "compressed_attention" not in self.model:
            return self.family.attention(self.w, name, self.model, kind, x)
        family = latent_attention if "mla" in self.model else compressed_attention
        attended, divergence = family.attention(self.w, name, self.model, kind, x)
        self.indexers = self.indexers + divergence / self.tokens
        return attended

    def feed_forward(self, name, number, x):
        if not has_experts(self.model, number):
            return mlp(self.w, name, self.model, x)
        hashed = number < min(self.model["moe"].get("hash_layers", 0), self.model["layers"])
        tokens = self.inputs if hashed else None
        out, balance, choices = experts.mixture(self.w, name, self.model, self.routing, x, tokens)
        self.balance = self.balance + balance
        self.choices[name + ".router.bias"] = self.choices.get(name + ".router.bias", 0) + choices
        return out

    def add_loss(self, depth, x, labels, weight):
        """`depth`: of a prediction, before the names of its tensors; none of the model itself."""
        if self.streams:
            x = hyper_connections.end(self.w, depth + "final_streams", self.streams, x)
        head = self.w["embedding" if self.model["tied_embeddings"] else "head"]
        logits = norm(self.w, depth + "final_norm", self.model, x) @ head.T * self.model.get("logit_factor", 1)
        if cap := self.model.get("logit_softcap"):
            logits = cap * (logits / cap).tanh()
        self.loss = self.loss + weight / self.tokens * cross_entropy(logits, labels)

    def joined(self, name, x, token):
        """What predicts a further token starts from: what was made of a position, and a later token. Of several streams each with the
        token (DeepSeek-V4, MTPBlock of its inference/model.py)."""
        if not self.streams:
            return linear(self.w, name + ".projection", torch.cat((norm(self.w, name + ".hidden_norm", self.model, x), token), dim=-1))
        streams = norm(self.w, name + ".hidden_norm", self.model, hyper_connections.split(self.streams["streams"], x))
        of_token = linear(self.w, name + ".token_projection", token)
        return (linear(self.w, name + ".projection", streams) + of_token[:, :, None]).flatten(-2)

    def add(self, inputs, labels, sequence, patches):
        """`inputs` and `labels` go on beyond the sequence by as many tokens as are predicted further. `patches`: of the images at the
        front of the sequence, or none."""
        layers, depths = self.model["layers"], self.model["mtp_depth"]
        factor = self.model.get("embedding_factor", 1)
        x = factor * self.family.embed(self.w, inputs[:, :sequence])
        if patches is not None:
            images = encoder.tokens(self.w, self.model["encoder"], patches, self.model["norm"])
            x = torch.cat((images, x[:, images.shape[1] :]), dim=1)
        self.inputs = inputs[:, :sequence]
        if self.streams:
            x = hyper_connections.begin(self.streams["streams"], x)
        for number in range(layers):
            x = self.layer(number, x)
        self.add_loss("", x, labels[:, :sequence], 1.0)
        for depth in range(1, depths + 1):  # multi-token prediction (DeepSeek-V3, section 2.2)
            name, later = f"mtp{depth}", slice(depth, depth + sequence)
            token = factor * self.w["embedding"][inputs[:, later].long()]
            x = self.layer(layers + depth - 1, self.joined(name, x, norm(self.w, name + ".token_norm", self.model, token)))
            self.add_loss(name + ".", x, labels[:, later], FURTHER_WEIGHT / depths)


def loss_and_gradients(step):
    """Of the step's weights and tokens, in double precision; for a router's biases the choices that they follow."""
    if step.facts["hidden_dropout"] or step.facts["attention_dropout"]:
        raise ValueError("the reference drops nothing")
    weights = {name: weight.double().requires_grad_() for name, weight in step.weights.items()}
    transformer = Transformer(step, weights)
    micro_batch, sequence = step.batch["micro_batch"], step.batch["sequence"]
    pairs = zip(step.tokens["inputs"].split(micro_batch), step.tokens["labels"].split(micro_batch))
    for number, (inputs, labels) in enumerate(pairs):
        transformer.add(inputs, labels, sequence, None if step.patches is None else step.patches[number])
    (transformer.loss + transformer.balance + transformer.indexers).backward()
    gradient = lambda name: transformer.choices[name].view_as(weights[name]) if name.endswith(".router.bias") else weights[name].grad
    return transformer.loss.item(), {name: gradient(name) for name in weights}
