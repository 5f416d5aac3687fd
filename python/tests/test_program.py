from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr
from pathlib import Path
from unittest import mock

import tandem
from tandem import program

from .cases import InAFolder, SOURCES, small


class FindingTheProgram(InAFolder):
    def a_program(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\necho tandem 7.8\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def test_by_its_variable(self) -> None:
        path = self.a_program(self.folder / "a program")
        with mock.patch.dict(os.environ, {"TANDEM": str(path)}):
            self.assertEqual(tandem.find_program(), path.resolve())
            self.assertEqual(tandem.version(), "7.8")
        with mock.patch.dict(os.environ, {"TANDEM": str(self.folder / "none")}):
            with self.assertRaisesRegex(tandem.ProgramNotFound, "TANDEM is .*none, which is no program"):
                tandem.find_program()

    def test_beside_the_package_or_in_the_path(self) -> None:
        package = self.folder / "prefix" / "lib" / "python3" / "dist-packages" / "tandem"
        with mock.patch.dict(os.environ, {"PATH": str(self.folder)}), mock.patch.object(program, "__file__", str(package / "p.py")):
            os.environ.pop("TANDEM", None)
            with self.assertRaisesRegex(tandem.ProgramNotFound, "set TANDEM to its path"):
                tandem.find_program()
            in_the_path = self.a_program(self.folder / "tandem")
            self.assertEqual(tandem.find_program(), in_the_path.resolve())
            beside = self.a_program(self.folder / "prefix" / "bin" / "tandem")
            self.assertEqual(tandem.find_program(), beside)

    def test_shipped_scenarios(self) -> None:
        names = tandem.shipped_scenarios()
        self.assertIn("llama3-405b-16k", names)
        self.assertEqual(names, sorted(path.stem for path in (SOURCES / "scenarios").glob("*.yaml")))
        self.assertTrue(tandem.scenario_path("tiny-host").is_file())


class Progress(InAFolder):
    def test_states_are_shown_and_messages_kept(self) -> None:
        stream = io.StringIO()
        line = program._ProgressLine(stream)
        for piece in ["tandem: warning: w\n", "\r\x1b[K1/2 po", "ints", "\r", "\x1b[K2/2 points\r\x1b[K", "tandem: a: b\n"]:
            line.take(piece)
        line.end()
        self.assertEqual(line.kept, "tandem: warning: w\ntandem: a: b\n")
        shown = [state.rstrip() for state in stream.getvalue().split("\r")]
        self.assertEqual(shown, ["", "1/2 po", "1/2 points", "2/2 points", "", ""])

    def test_is_shown_where_it_is_asked_for(self) -> None:
        for progress in (False, True):
            stream = io.StringIO()
            with redirect_stderr(stream):
                swept = tandem.sweep(small(), {"training.recompute": ["none", "full"]}, jobs=1, progress=progress)
            self.assertEqual([point.status for point in swept], ["done", "done"])
            self.assertEqual("/2 points" in stream.getvalue(), progress)

    def test_does_not_change_what_an_error_says(self) -> None:
        sentences = []
        for progress in (False, True):
            with self.assertRaises(tandem.InputError) as caught:
                tandem.simulate("tiny-host", parallelism__tq=2, progress=progress)
            sentences.append((caught.exception.sentence, caught.exception.detail))
        self.assertEqual(sentences[0], sentences[1])

    def test_an_interrupt_ends_the_program(self) -> None:
        scenario = self.write("small.yaml", tandem.scenario.as_json(small()))
        database = self.folder / "study.sqlite"
        text = f"""
import tandem
tandem.sweep({str(scenario)!r}, {{"training.global_batch": range(16, 16 * 300, 16)}}, database={str(database)!r}, jobs=1)
"""
        environment = {**os.environ, "PYTHONPATH": str(SOURCES / "python")}
        child = subprocess.Popen([sys.executable, "-c", text], stderr=subprocess.DEVNULL, env=environment)
        deadline = time.monotonic() + 60
        while not database.exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertTrue(database.exists())
        child.send_signal(signal.SIGINT)
        self.assertNotEqual(child.wait(timeout=10), 0)
        command_lines = []
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                command_lines.append(process.read_bytes())
            except OSError:
                pass
        self.assertFalse([line for line in command_lines if str(database).encode() in line])


class Words(InAFolder):
    def test_no_shell_reads_them(self) -> None:
        path = self.write("$(touch x) 'a' \"b\".yaml", tandem.scenario.as_json(small()))
        here = os.getcwd()
        os.chdir(self.folder)
        try:
            step = tandem.simulate(path, name="$(touch y); `touch z`: 'é' \"q\"")
        finally:
            os.chdir(here)
        self.assertEqual(step.scenario, "$(touch y); `touch z`: 'é' \"q\"")
        self.assertEqual([file.name for file in self.folder.iterdir()], [path.name])

    def test_run_takes_any_command(self) -> None:
        ended = tandem.run(["search", "--help"])
        self.assertEqual(ended.exit_code, 0)
        self.assertIn("--explain", ended.out)
