"""AdamW (Loshchilov & Hutter 2019, algorithm 2) on gradients clipped by their global norm."""


def clipped(gradients, clip_norm):
    norm = sum(g.square().sum() for g in gradients.values()).sqrt()
    return {name: g * min(1.0, clip_norm / norm.item()) if clip_norm > 0 else g for name, g in gradients.items()}


def adam(weight, gradient, momentum, variance, settings):
    beta1, beta2, step = settings["beta1"], settings["beta2"], settings["step"]
    momentum = beta1 * momentum + (1 - beta1) * gradient
    variance = beta2 * variance + (1 - beta2) * gradient.square()
    direction = momentum / (1 - beta1**step) / ((variance / (1 - beta2**step)).sqrt() + settings["epsilon"])
    return weight - settings["learning_rate"] * (direction + settings["weight_decay"] * weight)


def updated_weights(step, gradients):
    settings = step.facts["optimizer"]
    gradients = clipped(gradients, settings["clip_norm"])
    state = lambda name, kind: step.states[f"{name}.{kind}"].double()
    return {
        name: adam(weight.double(), gradients[name], state(name, "momentum"), state(name, "variance"), settings)
        for name, weight in step.weights.items()
    }
