"""Reads the folder that `tandem execute --dump` leaves."""

import json
import struct
from pathlib import Path

import numpy
import torch

TYPES = {"F32": numpy.float32, "I32": numpy.int32}


def read_safetensors(path):
    """The tensors of a file, by name. As github.com/huggingface/safetensors has the format: a length, a JSON text, the numbers."""
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = numpy.frombuffer(data[begin:end], dtype=TYPES[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = torch.from_numpy(values.copy())
    return tensors


class Step:
    """An executed step: what it started from and what became of it."""

    def __init__(self, folder):
        folder = Path(folder)
        read = lambda name: read_safetensors(folder / f"{name}.safetensors")
        self.facts = json.loads((folder / "step.json").read_text())
        self.model = self.facts["model"]
        self.batch = self.facts["batch"]
        self.weights = read("weights")
        self.states = read("optimizer")
        self.gradients = read("gradients")
        self.updated = read("updated")
        self.tokens = read("tokens")
        self.patches = read("patches")["patches"] if "encoder" in self.model else None
        self.loss = self.facts["loss"]
