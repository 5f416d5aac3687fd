from __future__ import annotations

import html
import json
import re
import subprocess
import warnings

import tandem

from .cases import AXES, InAFolder, SOURCES, first, small, without_run
from .types_of_results import mismatches


class Steps(InAFolder):
    def test_are_those_of_the_command(self) -> None:
        path = self.write("small.yaml", tandem.scenario.as_json(small()))
        out = subprocess.run(
            [str(tandem.find_program()), "simulate", str(path), "--set", "training.recompute=full", "--json", "-"],
            capture_output=True,
            check=True,
        ).stdout
        wanted = without_run(json.loads(out))
        for step in (
            tandem.simulate(path, {"training.recompute": "full"}),
            tandem.simulate(str(path), training__recompute="full"),
            tandem.simulate(small(), {"training": {"recompute": "full"}}),
        ):
            self.assertEqual(without_run(step.to_dict()), wanted)
            self.assertEqual(list(mismatches(step)), [])

    def test_values_reach_the_scenario_as_they_are(self) -> None:
        step = tandem.simulate(small(), {"name": "a: {b}, 'c' é\n#d"}, training__overlap={"tp": True})
        self.assertEqual(step.scenario, "a: {b}, 'c' é\n#d")
        full = tandem.simulate(small(), training__recompute=["norm", "mlp"])
        self.assertGreater(full.step_time_s, 0)
        with self.assertRaisesRegex(tandem.InputError, "Out of range float"):
            tandem.simulate(small(), training__sequence=float("nan"))
        with self.assertRaisesRegex(tandem.InputError, "which a scenario cannot hold"):
            tandem.simulate(small(), training__sequence=object())

    def test_parts_add_up(self) -> None:
        step = tandem.simulate(small())
        parts = step.time_s
        self.assertAlmostEqual(parts.compute + sum(parts.exposed.values()) + parts.bubble + parts.optimizer, step.step_time_s, 12)

    def test_shows_the_text_and_the_report(self) -> None:
        step = tandem.simulate(small())
        self.assertTrue(str(step).startswith("small: 32 x h100-sxm-80gb"))
        self.assertEqual(step._repr_html_(), f"<pre>{html.escape(str(step))}</pre>")
        report = step.report()
        self.assertIs(step.report(), report)
        self.assertTrue(report.html.startswith("<!doctype html>"))
        shown = re.fullmatch(r'<iframe [^>]*srcdoc="([^"]*)"></iframe>', report._repr_html_())
        assert shown is not None
        self.assertEqual(html.unescape(shown[1]), report.html)
        self.assertEqual(report.save(self.folder / "r.html").read_text(encoding="utf-8"), report.html)

    def test_warnings_are_warnings(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            step = tandem.simulate(small(), {"parallelism.order": ["dp", "tp", "cp", "ep", "pp"], "cluster.gpus": 32})
        self.assertEqual([str(warning.message) for warning in caught], step.warnings)
        self.assertTrue(all(warning.category is tandem.TandemWarning for warning in caught))

    def test_traces(self) -> None:
        tandem.simulate(small(), trace=self.folder / "t.json", trace_ranks="0")
        self.assertIn("traceEvents", json.loads((self.folder / "t.json").read_text(encoding="utf-8")))

    def test_execute_and_crosscheck(self) -> None:
        executed = tandem.execute("tiny-host", verify=True)
        self.assertEqual(executed.run.backend, "host")
        self.assertEqual(list(mismatches(executed)), [])
        checked = tandem.crosscheck("tiny-host")
        assert checked.crosscheck is not None
        self.assertEqual(checked.crosscheck.step.measured_s, checked.step_time_s)
        self.assertEqual(list(mismatches(checked)), [])


class Errors(InAFolder):
    def test_wrong_input(self) -> None:
        path = self.write("wrong.yaml", "name: x\nmodle: llama3-8b\n")
        with self.assertRaises(tandem.InputError) as caught:
            tandem.simulate(path)
        error = caught.exception
        self.assertEqual(error.exit_code, 2)
        self.assertTrue(error.sentence.startswith(f"{path}:2:1: "), error.sentence)
        self.assertEqual(str(error), error.sentence)
        self.assertIn("simulate", error.command)
        with self.assertRaisesRegex(tandem.InputError, "^the scenario: .*`modle`; did you mean `model`"):
            tandem.simulate({"name": "x", "modle": "llama3-8b"})
        with self.assertRaisesRegex(tandem.InputError, "neither a file nor a shipped scenario; nearest: llama3-405b-16k"):
            tandem.simulate("lama3-405b-16k")
        with self.assertRaisesRegex(tandem.InputError, "no.yaml: cannot be read"):
            tandem.simulate("no.yaml")

    def test_does_not_fit(self) -> None:
        with self.assertRaises(tandem.DoesNotFit) as caught:
            tandem.simulate(small(), cluster__gpu__memory_GiB=0.001)
        self.assertEqual(caught.exception.exit_code, 3)
        self.assertRegex(str(caught.exception), "^the scenario: stage [01] needs .*--allow-oom")
        self.assertIn("DOES NOT FIT", caught.exception.detail)
        self.assertFalse(tandem.simulate(small(), cluster__gpu__memory_GiB=0.001, allow_oom=True).memory.fits)

    def test_failed_runs(self) -> None:
        with self.assertRaises(tandem.RunFailed) as caught:
            tandem.simulate(small(), trace="/no/such/folder/t.json")
        self.assertEqual(caught.exception.exit_code, 1)
        self.assertIn("/no/such/folder", caught.exception.sentence)


class Others(InAFolder):
    def test_search(self) -> None:
        found = tandem.search(small(search={"axes": AXES}), jobs=1, write=self.folder / "best")
        self.assertEqual(list(mismatches(found)), [])
        self.assertGreaterEqual(found.counts.plans, 2)
        self.assertTrue(found.best_is_proven)
        rows = found.table()
        self.assertEqual({row["parallelism.pp"] for row in rows}, {1, 2})
        self.assertEqual(rows[0]["step_time_s"], min(row["step_time_s"] for row in rows))
        again = tandem.simulate(self.folder / "best" / "scenario.yaml")
        self.assertEqual(again.step_time_s, found.best[0].step_time_s)
        with self.assertRaises(tandem.DoesNotFit) as caught:
            tandem.search(small(search={"axes": AXES}), cluster__gpu__memory_GiB=0.001, jobs=1)
        assert caught.exception.search is not None and caught.exception.search.nearest is not None
        self.assertGreater(caught.exception.search.nearest.memory.peak_bytes, 0)

    def test_lint(self) -> None:
        clean = tandem.lint(small(), training__global_batch=512, costs=False)
        self.assertLessEqual(clean.exit_code, 1)
        self.assertEqual(list(mismatches(clean)), [])
        refused = tandem.lint(small(), parallelism__tp=3)
        self.assertEqual(refused.exit_code, 2)
        self.assertEqual(refused.findings[0].rule, "refused")
        self.assertEqual(list(mismatches(refused)), [])
        tight = tandem.lint(small(), cluster__gpu__memory_GiB=0.06, jobs=1)
        self.assertEqual(list(mismatches(tight)), [])

    def test_diff(self) -> None:
        a, b = tandem.simulate(small()), tandem.simulate(small(), training__recompute="full")
        change = tandem.diff(a, b)
        self.assertEqual(list(mismatches(change)), [])
        total = sum((part.b_s or 0) - (part.a_s or 0) for part in change.parts)
        self.assertAlmostEqual(total, b.step_time_s - a.step_time_s, 12)
        self.assertRegex(first(change.markdown()), r"^\*\*step time .* -&gt; ")
        self.assertIn("</html>", change.report().html)
        saved = a.save(self.folder / "a.json")
        self.assertIn("no difference", str(tandem.diff(saved, a)))
        read = tandem.StepResult.read(saved)
        self.assertEqual(read, a)
        self.assertIn("</html>", read.report().html)

    def test_campaign_topology_and_validation(self) -> None:
        played = tandem.campaign(small(faults={"mtbf": {"gpu_hours": 1000}}, campaign={"days": 1, "replicas": 10}), jobs=1)
        self.assertEqual(list(mismatches(played)), [])
        placed = tandem.place(small(), nodes="0-3", moves=10, jobs=1, out=self.folder / "p.yaml")
        self.assertLessEqual(placed.step_time_found_s, placed.step_time_packed_s)
        there = tandem.simulate(small(), parallelism__placement={"file": str(self.folder / "p.yaml")})
        self.assertEqual(there.step_time_s, placed.step_time_found_s)
        self.assertEqual(list(mismatches(placed)), [])
        shown = tandem.topology(small())
        self.assertEqual(shown.cluster.gpus, 32)
        self.assertEqual(list(mismatches(shown)), [])
        runs = SOURCES / "scenarios" / "runs" / "korthikanti-2022.csv"
        scored = tandem.validate(runs, jobs=1)
        self.assertEqual(list(mismatches(scored)), [])
        explained = tandem.explain_run(runs, "22b-full", jobs=1)
        self.assertEqual(explained.row.id, "22b-full")
        self.assertEqual(list(mismatches(explained)), [])
        rows = _rows_of(runs.read_text(encoding="utf-8"))
        self.assertEqual(tandem.validate(rows, jobs=1).to_dict()["rows"], scored.to_dict()["rows"])


def _rows_of(text: str) -> list[dict[str, str]]:
    import csv

    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


class Sweeps(InAFolder):
    def test_points_are_the_cells_in_order(self) -> None:
        recompute, sequence = ["none", "full"], [512, 1024]
        study = {"training.recompute": recompute, "training.sequence": sequence}
        points = [{"parallelism.dp": 8, "cluster.gpus": 32}, {"parallelism.dp": 16, "cluster.gpus": 64}]
        database = self.folder / "s.sqlite"
        swept = tandem.sweep(small(), study, points, jobs=2, database=database)
        cells = [(point["parallelism.dp"], r, s) for point in points for r in recompute for s in sequence]
        names = ("parallelism.dp", "training.recompute", "training.sequence")
        self.assertEqual([tuple(point.fields[name] for name in names) for point in swept], cells)
        for point in swept:
            assert point.step is not None
            self.assertEqual(point.status, "done")
            self.assertEqual(list(mismatches(point.step)), [])
        one = tandem.simulate(small(), {**swept[5].fields})
        assert swept[5].step is not None
        self.assertEqual(one.step_time_s, swept[5].step.step_time_s)
        again = tandem.sweep(small(), study, points, jobs=1, database=database)
        self.assertIn("8 of them from before", str(again))
        flags = tandem.sweep(small(), {"parallelism.sp": [True, False], "training.recompute": [["norm"], "full"]}, jobs=1)
        for point in flags:
            assert point.step is not None
            self.assertEqual(tandem.simulate(small(), point.fields).step_time_s, point.step.step_time_s)
        self.assertEqual(again.table(), swept.table())
        self.assertIn("</html>", again.report().html)

    def test_says_what_is_refused_and_what_does_not_fit(self) -> None:
        grid = {"parallelism.tp": [2, 3], "cluster.gpu.memory_GiB": [80, 0.001]}
        swept = tandem.sweep(small(), grid, skip_invalid=True, fields={"training.recompute": "full"}, jobs=1)
        self.assertEqual([point.status for point in swept], ["done", "oom", "refused", "refused"])
        self.assertIn("tp 3", swept[2].message)
        self.assertIsNone(swept[2].step)
        assert swept[1].step is not None
        self.assertFalse(swept[1].step.memory.fits)
        with self.assertRaisesRegex(tandem.InputError, "tp 3"):
            tandem.sweep(small(), grid, jobs=1)
        with self.assertRaisesRegex(tandem.InputError, "needs a grid"):
            tandem.sweep(small())
        with self.assertRaisesRegex(tandem.InputError, "expected a list of values"):
            tandem.sweep(small(), {"training.recompute": "full"})

    def test_a_shipped_scenario_and_a_study(self) -> None:
        swept = tandem.sweep("tiny-host", {"training.recompute": ["none"]}, jobs=1)
        self.assertEqual(len(swept), 1)
        self.write("small.yaml", tandem.scenario.as_json(small()))
        path = self.write("study.yaml", "scenario: small.yaml\ngrid: {training.recompute: [none, full]}\n")
        fields = [point.fields for point in tandem.sweep(path, jobs=1)]
        self.assertEqual(fields, [{"training.recompute": "none"}, {"training.recompute": "full"}])
