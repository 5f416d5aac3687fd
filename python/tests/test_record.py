from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import unittest
from typing import Any, Dict

from tandem import results
from tandem.record import Named, data_frame

from .cases import SOURCES
from .types_of_results import mismatches

VALUES: Dict[str, Any] = {
    "step_time_s": 2.5,
    "time_s": {"compute": 2.0, "exposed": {"tp": 0.25, "dp": 0.25}, "bubble": 0.0, "optimizer": 0.0},
    "kinds": [{"name": "gemm", "phase": "forward", "count": 4, "time_s": 1.0}],
    "interval_s": {"low": 2.0, "known_from": {"class": "dense", "runs": 3}},
    "of_a_later_version": {"x": 1},
}


class Records(unittest.TestCase):
    def setUp(self) -> None:
        self.step = results.Step(VALUES)

    def test_keys_are_attributes_and_items(self) -> None:
        self.assertEqual(self.step.step_time_s, 2.5)
        self.assertEqual(self.step["step_time_s"], 2.5)
        self.assertIsInstance(self.step.time_s, results.Parts)
        self.assertIsInstance(self.step.time_s.exposed, Named)
        self.assertEqual(self.step.time_s.exposed.tp, 0.25)
        self.assertEqual(dict(self.step.time_s.exposed), {"tp": 0.25, "dp": 0.25})
        self.assertEqual(self.step.kinds[0].name, "gemm")
        self.assertEqual(getattr(self.step, "of_a_later_version"), {"x": 1})
        self.assertEqual(set(self.step), set(VALUES))
        self.assertIn("step_time_s", dir(self.step))

    def test_a_key_named_like_a_word_of_python(self) -> None:
        assert self.step.interval_s is not None
        self.assertEqual(self.step.interval_s.known_from.class_, "dense")
        self.assertEqual(results.ValidationRatiosPair({"from": "a", "to": "b"}).from_, "a")

    def test_what_is_left_out_is_none_and_what_is_misspelt_is_refused(self) -> None:
        self.assertIsNone(self.step.jitter)
        with self.assertRaisesRegex(AttributeError, "Step has no key step_tme_s; did you mean step_time_s?"):
            getattr(self.step, "step_tme_s")
        with self.assertRaisesRegex(AttributeError, "there is no cp here"):
            getattr(self.step.time_s.exposed, "cp")

    def test_to_dict_and_flat(self) -> None:
        self.assertEqual(self.step.to_dict(), VALUES)
        flat = self.step.flat()
        self.assertEqual(flat["time_s.exposed.tp"], 0.25)
        self.assertEqual(flat["interval_s.known_from.class"], "dense")
        self.assertNotIn("kinds", flat)
        self.assertEqual(eval(repr(results.Kind({"name": "x"})), {"Kind": dict}), {"name": "x"})

    def test_can_be_copied_and_sent_to_processes(self) -> None:
        for copied in (copy.deepcopy(self.step), pickle.loads(pickle.dumps(self.step))):
            self.assertEqual(copied, self.step)
            self.assertEqual(copied.time_s.exposed.tp, 0.25)

    def test_mismatches_sees_what_is_wrong(self) -> None:
        kind = {"name": "gemm", "phase": "forward", "count": 4, "time_s": 1.0}
        self.assertEqual(list(mismatches(results.Kind(kind))), [])
        self.assertEqual(list(mismatches(results.Kind({**kind, "time_s": "1"}))), ["time_s is '1', expected float"])
        self.assertEqual(list(mismatches(results.Kind({**kind, "x": 1}))), [".x is not declared"])
        del kind["name"]
        self.assertEqual(list(mismatches(results.Kind(kind))), ["name is None, expected str"])

    def test_a_frame_without_pandas_says_what_is_missing(self) -> None:
        before = sys.modules.get("pandas")
        sys.modules["pandas"] = None  # type: ignore[assignment]
        try:
            with self.assertRaisesRegex(ImportError, "python3-pandas"):
                data_frame([{}])
        finally:
            del sys.modules["pandas"]
            if before is not None:
                sys.modules["pandas"] = before

    def test_classes_are_those_of_the_document(self) -> None:
        made = subprocess.run(
            [sys.executable, str(SOURCES / "python" / "make_results.py"), "--check"], capture_output=True, text=True
        )
        self.assertEqual(made.stdout, "", "python3 python/make_results.py mends that")
        self.assertEqual(made.returncode, 0, made.stderr)
