"""AdamW (Loshchilov & Hutter 2019, algorithm 2), or for matrices inside the layers Muon (https://kellerjordan.github.io/posts/muon/;
Liu et al. 2025, arXiv 2502.16982), or Adafactor (Shazeer & Stern 2018, arXiv 1804.04235), on gradients clipped by their global norm."""

import torch

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


def clipped(gradients, clip_norm):
    norm = sum(g.square().sum() for name, g in gradients.items() if not is_expert_bias(name)).sqrt()
    return {name: g * min(1.0, clip_norm / norm.item()) if clip_norm > 0 else g for name, g in gradients.items()}


def adam(weight, gradient, momentum, variance, settings):
    beta1, beta2, step = settings["beta1"], settings["beta2"], settings["step"]
    momentum = beta1 * momentum + (1 - beta1) * gradient
    variance = beta2 * variance + (1 - beta2) * gradient.square()
    direction = momentum / (1 - beta1**step) / ((variance / (1 - beta2**step)).sqrt() + settings["epsilon"])
    return weight - settings["learning_rate"] * (direction + settings["weight_decay"] * weight)


def orthogonalized(x):
    """Five steps of Newton-Schulz, along the smaller side."""
    if x.shape[0] > x.shape[1]:
        return orthogonalized(x.T).T
    a, b, c = NEWTON_SCHULZ
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x


def muon(weight, gradient, momentum, settings):
    """With Nesterov's momentum; a step is as large as Adam's."""
    momentum = settings["momentum"] * momentum + gradient
    direction = orthogonalized(gradient + settings["momentum"] * momentum)
    scale = 0.2 * max(weight.shape) ** 0.5
    return weight - settings["learning_rate"] * (scale * direction + settings["weight_decay"] * weight)


def adafactor(weight, gradient, variance, settings):
    """As torch.optim.Adafactor (2.5 and later), from the states of a run under way: factors, which all are one number, or a variance."""
    epsilon, step = torch.finfo(torch.float32).eps, settings["step"]
    move, squares = step ** settings["beta2_decay"], gradient.square()
    if variance is None:
        rows = torch.full((weight.shape[0], 1), settings["factors"], dtype=weight.dtype)
        columns = torch.full((1, weight.shape[1]), settings["factors"], dtype=weight.dtype)
        rows = rows.lerp(squares.mean(dim=1, keepdim=True), move)
        columns = columns.lerp(squares.mean(dim=0, keepdim=True), move)
        estimate = rows @ columns / rows.mean().clamp(min=epsilon)
    else:
        estimate = variance.lerp(squares, move)
    update = gradient * estimate.clamp(min=epsilon**2).rsqrt()
    scale = max(settings["least_scale"], weight.square().mean().sqrt().item())
    rate = min(settings["learning_rate"], step**-0.5) * scale
    rate /= max(1.0, update.square().mean().sqrt().item() / settings["threshold"])
    return weight * (1 - settings["learning_rate"] * settings["weight_decay"]) - rate * update


def adafactor_of_parts(name, weight, gradient, variance, step):
    """The biases of queries, keys and values lie in one tensor and are taken by themselves."""
    settings, model = step.facts["optimizer"], step.facts["model"]
    if not name.endswith(".qkv.bias"):
        return adafactor(weight, gradient, variance, settings)
    rows = [heads * model["head_dim"] for heads in (model["heads"], model["kv_heads"], model["kv_heads"])]
    parts = zip(weight.split(rows), gradient.split(rows), variance.split(rows))
    return torch.cat([adafactor(*part, settings) for part in parts])


def is_inside_a_layer(name, weight):
    outside = name.endswith(("final_streams", ".taps"))
    return weight.dim() == 2 and not outside and name not in ("embedding", "positions", "head")


def is_expert_bias(name):
    return name.endswith(".router.bias")


def moved_bias(bias, choices, rate):
    """Balancing without a loss (DeepSeek-V3, arXiv 2412.19437, section 2.1.2)."""
    return bias + rate * (choices.mean() - choices).sign()


def updated_weights(step, gradients):
    settings, choices = step.facts["optimizer"], gradients
    gradients = clipped(gradients, settings["clip_norm"])
    state = lambda name, kind: step.states[f"{name}.{kind}"].double()

    def updated(name, weight):
        if is_expert_bias(name):
            return moved_bias(weight, choices[name], step.facts["routing"]["bias_update_rate"])
        if settings["name"] == "adafactor":
            variance = step.states.get(f"{name}.variance")
            return adafactor_of_parts(name, weight, gradients[name], variance if variance is None else variance.double(), step)
        if settings["name"] == "muon" and is_inside_a_layer(name, weight):
            return muon(weight, gradients[name], state(name, "momentum"), settings["muon"])
        return adam(weight, gradients[name], state(name, "momentum"), state(name, "variance"), settings)

    return {name: updated(name, weight.double()) for name, weight in step.weights.items()}
