"""A pre-norm decoder of any of the families, and the loss of a global batch."""

import torch

import experts
import gpt
import latent_attention
import llama
from parts import cross_entropy, linear, norm

FURTHER_WEIGHT = 0.3  # of the loss of all further tokens (DeepSeek-V3, arXiv 2412.19437, section 4.2)


def has_experts(model, number):
    moe = model.get("moe", {"experts": 0})
    return moe["experts"] > 0 and number >= moe["first_dense_layers"] and (number - moe["first_dense_layers"]) % moe["every"] == 0


class Transformer:
    """One micro-batch at a time: adds up the loss, and what is differentiated beside it."""

    def __init__(self, step, weights):
        self.w, self.model, self.routing = weights, step.model, step.facts.get("routing")
        self.family = llama if self.model["rotary"] else gpt
        self.tokens = step.batch["global_batch"] * step.batch["sequence"]
        self.loss, self.balance = 0.0, 0.0

    def layer(self, number, x):
        name, model = f"layer{number}", self.model
        attention = latent_attention.attention if "mla" in model else self.family.attention
        x = x + attention(self.w, name, model, norm(self.w, name + ".attention_norm", model, x))
        normed = norm(self.w, name + ".mlp_norm", model, x)
        if not has_experts(model, number):
            return x + self.family.mlp(self.w, name, normed)
        out, balance = experts.mixture(self.w, name, model, self.routing, normed)
        self.balance = self.balance + balance
        return x + out

    def add_loss(self, final_norm, x, labels, weight):
        head = self.w["embedding" if self.model["tied_embeddings"] else "head"]
        logits = norm(self.w, final_norm, self.model, x) @ head.T
        self.loss = self.loss + weight / self.tokens * cross_entropy(logits, labels)

    def add(self, inputs, labels, sequence):
        """`inputs` and `labels` go on beyond the sequence by as many tokens as are predicted further."""
        layers, depths = self.model["layers"], self.model["mtp_depth"]
        x = self.family.embed(self.w, inputs[:, :sequence])
        for number in range(layers):
            x = self.layer(number, x)
        self.add_loss("final_norm", x, labels[:, :sequence], 1.0)
        for depth in range(1, depths + 1):  # multi-token prediction (DeepSeek-V3, section 2.2)
            name, later = f"mtp{depth}", slice(depth, depth + sequence)
            token = self.w["embedding"][inputs[:, later].long()]
            both = (norm(self.w, name + ".hidden_norm", self.model, x), norm(self.w, name + ".token_norm", self.model, token))
            x = self.layer(layers + depth - 1, linear(self.w, name + ".projection", torch.cat(both, dim=-1)))
            self.add_loss(name + ".final_norm", x, labels[:, later], FURTHER_WEIGHT / depths)


def loss_and_gradients(step):
    """Of the step's weights and tokens, in double precision."""
    if step.facts["hidden_dropout"] or step.facts["attention_dropout"]:
        raise ValueError("the reference drops nothing")
    weights = {name: weight.double().requires_grad_() for name, weight in step.weights.items()}
    transformer = Transformer(step, weights)
    micro_batch, sequence = step.batch["micro_batch"], step.batch["sequence"]
    for inputs, labels in zip(step.tokens["inputs"].split(micro_batch), step.tokens["labels"].split(micro_batch)):
        transformer.add(inputs, labels, sequence)
    (transformer.loss + transformer.balance).backward()
    return transformer.loss.item(), {name: weight.grad for name, weight in weights.items()}
