"""What takes longer, or needs packages: mypy, pandas, pip. TANDEM_NEEDS_PACKAGES=1 makes a missing one a failure."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
import warnings
from typing import Any, Dict

import tandem

from . import notebook
from .cases import AXES, InAFolder, LLAMA, SOURCES, small

PYTHON = SOURCES / "python"


def need(case: unittest.TestCase, *modules: str) -> None:
    for module in modules:
        if importlib.util.find_spec(module) is None:
            if os.environ.get("TANDEM_NEEDS_PACKAGES") == "1":
                case.fail(f"no {module} here")
            case.skipTest(f"no {module} here")


class Types(InAFolder):
    def mypy(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "mypy", "--cache-dir", str(self.folder / "cache"), *arguments]
        return subprocess.run(command, cwd=PYTHON, capture_output=True, text=True).stdout

    def test_hold_strictly(self) -> None:
        need(self, "mypy")
        self.assertRegex(self.mypy(), r"^Success: no issues found in \d+ source files\n$")

    def test_find_a_misspelt_key_of_a_caller(self) -> None:
        need(self, "mypy")
        wrong = self.write("wrong.py", 'import tandem\ns = tandem.simulate("x")\nx: str = s.step_time_s\ns.time_s.bubbel\n')
        said = self.mypy(str(wrong))
        self.assertIn("wrong.py:3: error: Incompatible types in assignment", said)
        self.assertIn('"Parts" has no attribute "bubbel"; maybe "bubble"?', said)


class Frames(unittest.TestCase):
    def test_have_a_row_for_each_point_plan_and_run(self) -> None:
        need(self, "pandas")
        swept = tandem.sweep(small(), {"training.recompute": ["none", "full"]}, jobs=1)
        frame = swept.frame()
        self.assertEqual(list(frame["training.recompute"]), ["none", "full"])
        assert swept[1].step is not None
        self.assertEqual(frame["step_time_s"][1], swept[1].step.step_time_s)
        self.assertEqual(frame["time_s.exposed.tp"].dtype, "float64")
        found = tandem.search(small(search={"axes": AXES}), jobs=1)
        self.assertEqual(list(found.frame()["step_time_s"]), [plan.step_time_s for plan in found.best])
        self.assertEqual(tandem.simulate(small()).frame().shape[0], 1)

        import pandas

        runs = pandas.read_csv(SOURCES / "scenarios" / "runs" / "korthikanti-2022.csv", comment="#")
        scored = tandem.validate(runs, jobs=1).frame()
        self.assertEqual(list(scored["id"]), list(runs["id"]))
        gpus = pandas.Series([32])
        self.assertEqual(tandem.simulate(small(), cluster__gpus=gpus[0], parallelism__dp=8).gpus, 32)


class Documents(InAFolder):
    def run_here(self, work: Any) -> str:
        """What `work` prints, in a folder of its own."""
        here, out = os.getcwd(), io.StringIO()
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(out), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                work()
        finally:
            os.chdir(here)
        return out.getvalue()

    def test_notebooks_run(self) -> None:
        paths = sorted((SOURCES / "docs" / "notebooks").glob("*.ipynb"))
        self.assertTrue(paths)
        for path in paths:
            with self.subTest(path.name):
                shown: list[str] = []
                printed = self.run_here(lambda: shown.extend(notebook.run(path)))
                self.assertIn("srcdoc=", shown[-1])
                self.assertIn("needs", printed)
                self.assertIn("did you mean `tp`", printed)

    def test_examples_of_the_page_run(self) -> None:
        need(self, "pandas")
        shutil.copy(SOURCES / "scenarios" / "llama3-8b-64.yaml", self.folder / "my-run.yaml")
        (self.folder / "Llama-3.1-8B").mkdir()
        self.write("Llama-3.1-8B/config.json", json.dumps(LLAMA))
        text = (SOURCES / "docs" / "python.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        self.assertGreater(len(blocks), 4)
        names: Dict[str, Any] = {}

        def work() -> None:
            for i, block in enumerate(blocks, 1):
                exec(compile(block, f"python.md [{i}]", "exec"), names)

        self.run_here(work)


class Installing(InAFolder):
    def test_pip_installs_the_package(self) -> None:
        need(self, "pip", "setuptools", "wheel")
        sources = self.folder / "python"
        shutil.copytree(PYTHON, sources, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__", ".mypy_cache"))
        target = self.folder / "site"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps"]
        done = subprocess.run([*pip, "--target", str(target), str(sources)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue((target / "tandem" / "py.typed").is_file())
        program = "import tandem; print(tandem.__file__); print(tandem.simulate('tiny-host').gpus)"
        environment = {**os.environ, "PYTHONPATH": str(target), "TANDEM": str(tandem.find_program())}
        ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(ran.stdout.split(), [str(target / "tandem" / "__init__.py"), "8"], ran.stderr)
