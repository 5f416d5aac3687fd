from __future__ import annotations

import json
import os
import subprocess
import warnings
from unittest import mock

import tandem

from .cases import AXES, InAFolder, LLAMA, SOURCES, small, without_run
from .types_of_results import mismatches


class Importing(InAFolder):
    def test_a_config_json_is_a_scenario(self) -> None:
        path = self.write("config.json", json.dumps(LLAMA))
        imported = tandem.import_(path, source="hf", gpus=8, training__sequence=512)
        self.assertEqual(list(mismatches(imported)), [])
        self.assertEqual((imported.from_, imported.files), ("hf", [str(path)]))
        self.assertTrue(imported.assumed)
        step = tandem.simulate(imported)
        self.assertEqual((step.gpus, step.tokens), (8, 8 * 512))
        self.assertIn("hidden: 512", str(imported))

    def test_what_was_exported_comes_back(self) -> None:
        exported = tandem.export(small(), to="megatron")
        script = exported.save(self.folder / "run.sh")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            imported = tandem.import_([script], source="megatron", gpus=32, out=self.folder / "run.yaml")
        self.assertEqual(imported.path, self.folder / "run.yaml")
        self.assertIn("--tensor-model-parallel-size 2", str(exported))
        again = tandem.simulate(imported.path)
        self.assertEqual((again.gpus, again.tokens), (32, 16 * 1024))

    def test_traces_say_where_the_time_went(self) -> None:
        events = [
            {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "ts": 0, "dur": 1000, "pid": 1, "tid": 1},
            {"ph": "X", "cat": "kernel", "name": "ampere_bf16_s16816gemm_128x128", "ts": 100, "dur": 300, "pid": 0, "tid": 7,
             "args": {"stream": 7}},
        ]  # fmt: skip
        path = self.write("trace.json", json.dumps({"distributedInfo": {"rank": 0, "world_size": 4}, "traceEvents": events}))
        with self.assertWarnsRegex(tandem.TandemWarning, "3 of 4 ranks are not there"):
            traced = tandem.import_traces(path)
        self.assertEqual(list(mismatches(traced)), [])
        self.assertEqual(traced.world_size, 4)
        self.assertAlmostEqual(traced.ranks[0].compute_s, 300e-6, 12)

    def test_traces_are_held_against_a_scenario(self) -> None:
        tandem.simulate("tiny-host", trace=f"{self.folder}/traces/")
        compared = tandem.compare_with_traces("tiny-host", self.folder / "traces")
        self.assertEqual(list(mismatches(compared)), [])
        self.assertEqual((compared.world_size, compared.scenario), (8, "tiny-host"))
        self.assertAlmostEqual(compared.measured_s, compared.simulated_s, 6)
        self.assertIn("step", str(compared))

    def test_a_timeline_of_another_machine_is_held_against_the_simulation(self) -> None:
        graph = tandem.lower("tiny-host", out=self.folder / "step.dag")
        timeline = self.folder / "measured.timeline"
        runner = tandem.find_program().with_name("tandem-run")
        subprocess.run([str(runner), str(graph), "--backend", "host", "--out", str(timeline)], check=True, capture_output=True)
        checked = tandem.crosscheck("tiny-host", measured=timeline)
        assert checked.crosscheck is not None
        self.assertGreater(checked.crosscheck.step.measured_s, 0)

    def test_wrong_ones_are_wrong_input(self) -> None:
        path = self.write("config.json", '{"model_type": "lama"}')
        with self.assertRaisesRegex(tandem.InputError, "lama"):
            tandem.import_(path, source="hf")
        with self.assertRaisesRegex(tandem.InputError, "at least one path"):
            tandem.import_([], source="hf")
        with self.assertRaises(tandem.InputError):
            tandem.import_(path, source="hfs")


class Exporting(InAFolder):
    def test_is_what_the_command_writes(self) -> None:
        path = self.write("small.yaml", tandem.scenario.as_json(small()))
        command = [str(tandem.find_program()), "export", str(path), "--set", "training.recompute=full", "--to", "nccl"]
        out = subprocess.run(command, capture_output=True, check=True, text=True)
        exported = tandem.export(path, to="nccl", training__recompute="full")
        self.assertEqual(exported.text, out.stdout)
        self.assertEqual(exported.save(self.folder / "nccl.env").read_text(encoding="utf-8"), out.stdout)

    def test_says_what_is_lost(self) -> None:
        lost = tandem.export("deepseek-v3-2k", to="megatron").lost
        self.assertTrue(any(line.startswith("training.schedule: ") for line in lost), lost)

    def test_graphs_go_into_a_folder(self) -> None:
        two = tandem.export("tiny-host", to="chakra", out=self.folder / "two", ranks="0-1").path
        assert two is not None
        self.assertEqual(len(list(two.glob("*.et"))), 2)
        tandem.export("tiny-host", to="chakra", out=self.folder / "all")
        graph = tandem.import_(self.folder / "all", source="chakra", out=self.folder / "step.dag")
        self.assertGreater(graph.path.stat().st_size, 0)

    def test_a_scenario_without_presets_is_the_same_step(self) -> None:
        path = tandem.export(small(), to="scenario").save(self.folder / "whole.yaml")
        self.assertEqual(without_run(tandem.simulate(path).to_dict()), without_run(tandem.simulate(small()).to_dict()))


class Lowering(InAFolder):
    def test_writes_the_graph(self) -> None:
        path = tandem.lower("tiny-host", out=self.folder / "step.dag")
        folded = tandem.lower("tiny-host", out=self.folder / "folded.dag", folded=True)
        self.assertGreater(path.stat().st_size, folded.stat().st_size)
        runner = tandem.find_program().with_name("tandem-run")
        done = subprocess.run([str(runner), str(path), "--backend", "host"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("on 8 ranks", done.stdout)


class Calibrating(InAFolder):
    def test_a_profile_is_what_the_simulation_takes(self) -> None:
        profile = tandem.calibrate(self.folder / "host.profile", backend="host", scenarios=["tiny-host"], budget=1)
        self.assertIn("kernels and", str(profile))
        self.assertTrue(profile.path.with_name("host.profile.yaml").is_file())
        measured = tandem.simulate("tiny-host", profile=profile)
        self.assertNotEqual(measured.step_time_s, tandem.simulate("tiny-host").step_time_s)

    def test_runs_of_a_site_make_one(self) -> None:
        runs = SOURCES / "scenarios" / "runs" / "korthikanti-2022.csv"
        profile = tandem.calibrate(self.folder / "site.profile", runs=runs)
        self.assertIn("2 runs of a100-80gb", str(profile))

    def test_needs_a_backend_or_runs(self) -> None:
        with self.assertRaises(tandem.InputError):
            tandem.calibrate(self.folder / "none.profile")


class OnSlurm(InAFolder):
    """With the programs that pretend to be Slurm's."""

    def setUp(self) -> None:
        super().setUp()
        fake = SOURCES / "tests" / "cli" / "fake_slurm"
        path = f"{fake}{os.pathsep}{os.environ['PATH']}"
        patched = mock.patch.dict(os.environ, {"PATH": path, "FAKE_SLURM": str(self.folder / "slurm")})
        patched.start()
        self.addCleanup(patched.stop)
        (self.folder / "slurm").mkdir()

    def told(self) -> str:
        return (self.folder / "slurm" / "arguments").read_text(encoding="utf-8")

    def test_a_sweep_and_a_search_are_those_of_this_machine(self) -> None:
        grid = {"training.micro_batch": [1, 2]}
        here = tandem.sweep(small(), grid)
        there = tandem.sweep(small(), grid, slurm=2, sbatch="--partition=cpu -t 5", database=self.folder / "points.sqlite")
        for a, b in zip(here, there):
            assert a.step is not None and b.step is not None
            self.assertEqual(without_run(a.step.to_dict()), without_run(b.step.to_dict()))
        self.assertIn("--partition=cpu\n-t\n5\n", self.told())
        found = tandem.search(small(search={"axes": AXES}), slurm=1, database=self.folder / "plans.sqlite")
        plain = tandem.search(small(search={"axes": AXES}))
        self.assertEqual([plan.step_time_s for plan in found.best], [plan.step_time_s for plan in plain.best])

    def test_needs_a_database_that_nodes_see(self) -> None:
        with self.assertRaisesRegex(tandem.InputError, "needs a database"):
            tandem.sweep(small(), {"training.micro_batch": [1]}, slurm=2)
        with self.assertRaisesRegex(tandem.InputError, "slurm is None"):
            tandem.sweep(small(), {"training.micro_batch": [1]}, sbatch="--time=1")
