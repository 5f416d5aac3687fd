#!/usr/bin/env python3
"""Executes the models of families with Tandem and computes the same steps with PyTorch.

    run.py TANDEM [FAMILY]...    by default all of families.py

Ends with 77 where there is no PyTorch, unless TANDEM_NEEDS_TORCH is set."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
except ImportError as error:
    print(f"{'failed' if os.environ.get('TANDEM_NEEDS_TORCH') else 'skipped'}: {error} (apt-get install python3-torch)")
    sys.exit(1 if os.environ.get("TANDEM_NEEDS_TORCH") else 77)

from dumped import Step
from families import FAMILIES, scenario
from optimizer import updated_weights
from transformer import loss_and_gradients

# Of fp32 sums of a few thousand terms against double precision, relative to the tensor's largest element.
TOLERANCE = 1e-5
# A step changes a weight by a thousandth, of which fp32 leaves four digits.
STEP_TOLERANCE = 1e-3


def difference(values, reference):
    """The largest difference, relative to the largest element of the reference; infinite for what is not a number."""
    if values.shape != reference.shape:
        return float("inf")
    largest = (values.double() - reference).abs().max().item()
    if largest == 0:
        return 0.0  # such as of an expert to which no token went
    return largest / reference.abs().max().item() if largest == largest else float("inf")


def of_each(values, reference):
    """The tensor that differs most, and by how much. Both have the same names."""
    if values.keys() != reference.keys():
        return " ".join(sorted(values.keys() ^ reference.keys())), float("inf")
    return max(((name, difference(values[name], reference[name])) for name in reference), key=lambda pair: pair[1])


def with_gates_joined(gradients):
    """A factor of gates is a sum of both signs over all tokens, of which little may be left: it counts beside the biases of its gates,
    with which it is one tensor of Tandem's."""
    factor, bias = ".factor.weight", ".bias"
    gates = [name.removesuffix(factor) for name in gradients if name.endswith(factor)]
    joined = {name: torch.cat((gradients[name + factor], gradients[name + bias])) for name in gates}
    taken = {name + part for name in gates for part in (factor, bias)}
    return joined | {name: gradient for name, gradient in gradients.items() if name not in taken}


def changes(weights, before):
    return {name: weight.double() - before[name].double() for name, weight in weights.items()}


class Comparison:
    def __init__(self, step):
        self.loss, self.gradients = loss_and_gradients(step)
        self.updated = updated_weights(step, self.gradients)

    def failures(self, step):
        """Sentences about what of the step is not what PyTorch makes of it."""
        found = [
            ("the loss", "", abs(step.loss - self.loss) / abs(self.loss), TOLERANCE),
            ("the gradient of", *of_each(with_gates_joined(step.gradients), with_gates_joined(self.gradients)), TOLERANCE),
            ("the updated", *of_each(step.updated, self.updated), TOLERANCE),
            ("the change of", *of_each(changes(step.updated, step.weights), changes(self.updated, step.weights)), STEP_TOLERANCE),
        ]
        return [f"{what} {name} differs by {by:.1e}" for what, name, by, allowed in found if not by <= allowed]


def would_notice(comparison, step):
    """Whether the comparison sees one wrong element of the smallest gradient, and a wrong loss."""
    step.gradients = with_gates_joined(step.gradients)
    largest = {name: gradient.abs().max() for name, gradient in step.gradients.items() if gradient.any()}
    smallest = min(largest, key=largest.get)
    step.gradients[smallest].view(-1)[0] += 1e-3 * largest[smallest]
    step.loss *= 1.0001
    return len(comparison.failures(step)) == 2


def same_start(step, first):
    """Whether the step of another mesh started from the same numbers as the first: the very same."""
    pairs = ((step.weights, first.weights), (step.states, first.states), (step.tokens, first.tokens))
    return all(a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a) for a, b in pairs)


def execute(tandem, file, overrides, folder):
    options = [word for override in overrides for word in ("--set", override)]
    run = subprocess.run([tandem, "execute", file, "--backend", "host", "--dump", folder, *options], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"failed: {' '.join(overrides)}: {run.stderr}")
    return Step(folder)


def check(tandem, model, meshes, folder):
    """Returns how many of the meshes differ."""
    file = folder / "reference.yaml"
    file.write_text(scenario())
    first, failed = None, 0
    for number, mesh in enumerate(meshes):
        step = execute(tandem, file, model + mesh, folder / str(number))
        comparison = Comparison(step)
        failures = comparison.failures(step)
        if first and not same_start(step, first):
            failures.append("it starts from other numbers than on one rank")
        first = first or step
        print("FAILED" if failures else "same", step.facts["ranks"], "ranks", *model, *mesh, *failures, sep="  ", flush=True)
        failed += bool(failures)
        if not failures and not would_notice(comparison, step):
            sys.exit("failed: the comparison does not notice wrong numbers")
    return failed


def main(tandem, *families):
    failed = 0
    for family in families or FAMILIES:
        for model, meshes in FAMILIES[family]:
            with tempfile.TemporaryDirectory() as folder:
                failed += check(tandem, model, meshes, Path(folder))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
