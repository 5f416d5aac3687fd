"""What the tests have in common."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, Optional

SOURCES = Path(__file__).resolve().parents[2]


def small(**fields: Any) -> Dict[str, Any]:
    """A step of 32 GPUs that takes milliseconds to simulate."""
    scenario: Dict[str, Any] = {
        "name": "small",
        "model": {"layers": 4, "hidden": 512, "heads": 8, "kv_heads": 4, "ffn": 1024, "vocab": 4096},
        "cluster": {"preset": "dgx-h100", "gpus": 32},
        "parallelism": {"tp": 2, "sp": True, "pp": 2, "dp": 8},
        "training": {"sequence": 1024, "micro_batch": 1, "global_batch": 16},
    }
    return {**scenario, **fields}


AXES = {"tp": [2], "pp": [1, 2], "vpp": [1], "cp": [1], "zero": [1], "micro_batch": [1], "sp": [True], "schedule": ["1f1b"]}


# A model as Hugging Face's config.json has it.
LLAMA = {
    "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8,
    "num_key_value_heads": 4, "vocab_size": 4096, "rms_norm_eps": 1e-5, "max_position_embeddings": 1024,
}  # fmt: skip


class InAFolder(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path


def without_run(values: Dict[str, Any]) -> Dict[str, Any]:
    """A result without the part that differs from run to run."""
    return {key: value for key, value in values.items() if key != "run"}


def first(text: Optional[str]) -> str:
    """The first line."""
    return (text or "").splitlines()[0]
