"""The commands of Tandem as functions."""

from __future__ import annotations

import csv
import os
from typing import Any, Dict, Iterable, List, Mapping, Optional, Union

from .answers import (
    CampaignResult,
    DiffResult,
    ExplainedRunResult,
    LintResult,
    MeasuredStepResult,
    PlacementResult,
    SearchResult,
    StepResult,
    TopologyResult,
    ValidationResult,
)
from .command import Command, Folder, options, slurm_options
from .errors import DoesNotFit, RunFailed
from .program import run
from .scenario import Scenario, overrides, path_of

Fields = Optional[Mapping[str, Any]]
AnyPath = Union[str, "os.PathLike[str]"]


def on_scenario(
    name: str, scenario: Scenario, fields: Fields, more: Mapping[str, Any], progress: Optional[bool], **given: Any
) -> Command:
    """The command of that name on a scenario. given: its options, by name."""
    folder = Folder()
    flags = options({"--" + option.replace("_", "-"): value for option, value in given.items()})
    return Command([name, path_of(scenario, folder.path), *overrides(fields, more), *flags], folder, progress)


def simulate(
    scenario: Scenario,
    fields: Fields = None,
    /,
    *,
    allow_oom: bool = False,
    fold: bool = True,
    fold_tolerance: Optional[float] = None,
    collectives: Optional[str] = None,
    profile: Optional[AnyPath] = None,
    trace: Optional[AnyPath] = None,
    trace_ranks: Optional[str] = None,
    progress: Optional[bool] = None,
    **more: Any,
) -> StepResult:
    """Replays one training step on a model of the cluster.

    scenario: a path, the name of a shipped scenario, or a mapping. fields, and keywords beside the options: what is overridden,
    by path: `simulate("llama3-70b-512", {"parallelism.tp": 4})` or `simulate("llama3-70b-512", parallelism__tp=4)`. trace: the
    file of a timeline. progress: whether a line shows it; by default where a person watches.

    Raises InputError where the scenario is wrong, DoesNotFit where it does not fit in memory (allow_oom=True goes on), and
    RunFailed. What is possible but unwise is a TandemWarning.
    """
    command = on_scenario(
        "simulate",
        scenario,
        fields,
        more,
        progress,
        allow_oom=allow_oom,
        no_fold=not fold,
        fold_tolerance=fold_tolerance,
        collectives=collectives,
        profile=profile,
        trace=trace,
        trace_ranks=trace_ranks,
    )
    return StepResult(command.json(), command)


def execute(
    scenario: Scenario,
    fields: Fields = None,
    /,
    *,
    backend: str = "host",
    verify: bool = False,
    progress: Optional[bool] = None,
    **more: Any,
) -> StepResult:
    """Runs one step for real, on CPU threads ("host") or GPUs ("cuda"). verify: compares it with the unsharded model."""
    command = on_scenario("execute", scenario, fields, more, progress, backend=backend, verify=verify)
    return StepResult(command.json(), command)


def crosscheck(
    scenario: Scenario,
    fields: Fields = None,
    /,
    *,
    backend: Optional[str] = None,
    measured: Optional[AnyPath] = None,
    profile: Optional[AnyPath] = None,
    collectives: Optional[str] = None,
    progress: Optional[bool] = None,
    **more: Any,
) -> StepResult:
    """Simulates and executes the same graph; `crosscheck` of the result has the differences.

    backend: CPU threads ("host", the default) or GPUs ("cuda"). measured: in place of a backend, a timeline that `tandem-run` wrote.
    profile: kernel times that `calibrate` measured.
    """
    if backend is None and measured is None:
        backend = "host"
    command = on_scenario(
        "crosscheck", scenario, fields, more, progress, backend=backend, measured=measured, profile=profile, collectives=collectives
    )
    return StepResult(command.json(), command)


def compare_with_traces(
    scenario: Scenario, traces: AnyPath, fields: Fields = None, /, *, step: Optional[int] = None, **more: Any
) -> MeasuredStepResult:
    """Holds the simulation of a training run against its traces of torch.profiler: a file, or a folder with one of each rank.

    step: the N of a ProfilerStep#N; by default a typical one.
    """
    command = on_scenario("crosscheck", scenario, fields, more, False, measured=traces, step=step)
    return MeasuredStepResult(command.json(), command)


def search(
    scenario: Scenario,
    fields: Fields = None,
    /,
    *,
    explain: Optional[str] = None,
    write: Optional[AnyPath] = None,
    database: Optional[AnyPath] = None,
    jobs: Optional[int] = None,
    slurm: Optional[int] = None,
    sbatch: Union[str, Iterable[str]] = (),
    progress: Optional[bool] = None,
    **more: Any,
) -> SearchResult:
    """Finds the best plans for a scenario, whose section `search` says what is free.

    explain: a plan, `"tp=4,pp=8"`, of which the result then says why it is not better. write: a folder for the best plan as a
    scenario, and for Megatron-Core and TorchTitan. database: keeps what was simulated, for a search that goes on. slurm: how many
    tasks of a Slurm array simulate, in place of this machine; sbatch: what sbatch is told besides. Raises DoesNotFit where no
    plan fits; its `search.nearest` lacks least.
    """
    command = on_scenario("search", scenario, fields, more, progress, explain=explain, write=write, jobs=jobs)
    command.arguments += ["--out", os.fspath(database) if database is not None else str(command.folder / "search.sqlite")]
    command.arguments += slurm_options(slurm, sbatch, database is not None)
    found = SearchResult(command.json(accepted=(1, 3)), command)
    ended = command.ended
    if ended and ended.exit_code != 0:
        try:
            command.fail(ended)
        except DoesNotFit as error:
            error.search = found
            raise
    return found


def lint(
    scenario: Scenario,
    fields: Fields = None,
    /,
    *,
    costs: bool = True,
    jobs: Optional[int] = None,
    progress: Optional[bool] = None,
    **more: Any,
) -> LintResult:
    """Says before a run what will hurt, and by how much. costs=False simulates nothing."""
    command = on_scenario("lint", scenario, fields, more, progress, jobs=jobs, no_costs=not costs)
    return LintResult(command.json(accepted=(1, 2, 3)), command)


def campaign(
    scenario: Scenario,
    fields: Fields = None,
    /,
    *,
    jobs: Optional[int] = None,
    progress: Optional[bool] = None,
    **more: Any,
) -> CampaignResult:
    """Plays weeks of training: failures, checkpoints, goodput."""
    command = on_scenario("campaign", scenario, fields, more, progress, jobs=jobs)
    return CampaignResult(command.json(), command)


def place(
    scenario: Scenario,
    fields: Fields = None,
    /,
    *,
    nodes: Optional[str] = None,
    out: Optional[AnyPath] = None,
    seed: Optional[int] = None,
    moves: Optional[int] = None,
    jobs: Optional[int] = None,
    progress: Optional[bool] = None,
    **more: Any,
) -> PlacementResult:
    """Assigns ranks to free nodes. nodes: those that are free, `"0-3,8"` or hosts, `"tux[0-3]"`; default: all. out: the placement to write, for
    `parallelism.placement={"file": path}`; by default there is only the result."""
    command = on_scenario("place", scenario, fields, more, progress, nodes=nodes, seed=seed, moves=moves, jobs=jobs)
    command.arguments += options(
        {"--out": out if out is not None else command.folder / "placement.yaml", "--study": command.folder / "placement.sqlite"}
    )
    return PlacementResult(command.json(), command)


def topology(scenario: Scenario, fields: Fields = None, /, **more: Any) -> TopologyResult:
    """Shows the cluster, its links, and where each communicator lies."""
    command = on_scenario("topology", scenario, fields, more, False)
    return TopologyResult(command.json(), command)


def diff(a: Union[StepResult, AnyPath], b: Union[StepResult, AnyPath]) -> DiffResult:
    """Says what changed from one result to another; a path is that of a JSON result."""
    folder = Folder()

    def file(result: Union[StepResult, AnyPath], name: str) -> str:
        return str(result.save(folder / name)) if isinstance(result, StepResult) else os.fspath(result)

    command = Command(["diff", file(a, "a.json"), file(b, "b.json")], folder, False)
    return DiffResult(command.json(), command)


def runs_file(rows: Any, folder: Folder) -> str:
    """The path of a table of runs: a CSV file, mappings or a DataFrame."""
    if isinstance(rows, (str, os.PathLike)):
        return os.fspath(rows)
    path = folder / "runs.csv"
    if hasattr(rows, "to_csv"):
        rows.to_csv(path, index=False)
        return str(path)
    runs: List[Mapping[str, Any]] = list(rows)
    columns: Dict[str, None] = {column: None for run_ in runs for column in run_}
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(columns), lineterminator="\n")
        writer.writeheader()
        writer.writerows(runs)
    return str(path)


def validate(
    rows: Union[AnyPath, Iterable[Mapping[str, Any]], Any],
    *,
    core: bool = False,
    memory: bool = False,
    jobs: Optional[int] = None,
    slurm: Optional[int] = None,
    sbatch: Union[str, Iterable[str]] = (),
    progress: Optional[bool] = None,
) -> ValidationResult:
    """Predicts measured runs and scores the predictions. rows: a CSV file, mappings from column to cell, or a DataFrame. slurm: how
    many tasks of a Slurm array simulate, in place of this machine; sbatch: what sbatch is told besides."""
    folder = Folder()
    flags = options({"--core": core, "--memory": memory, "--jobs": jobs}) + slurm_options(slurm, sbatch, True)
    command = Command(["validate", runs_file(rows, folder), *flags], folder, progress)
    return ValidationResult(command.json(), command)


def explain_run(
    rows: Union[AnyPath, Iterable[Mapping[str, Any]], Any],
    run_id: str,
    *,
    jobs: Optional[int] = None,
    progress: Optional[bool] = None,
) -> ExplainedRunResult:
    """Explains the run of that id: where its time goes, what it could be wrong by, which measured run is like it."""
    folder = Folder()
    arguments = ["validate", runs_file(rows, folder), "--explain", run_id, *options({"--jobs": jobs})]
    command = Command(arguments, folder, progress)
    return ExplainedRunResult(command.json(), command)


def version() -> str:
    """The version of the program: "0.1"."""
    ended = run(["--version"], False)
    if ended.exit_code != 0:
        raise RunFailed("tandem --version failed", detail=ended.err, command=ended.command)
    return ended.out.split()[-1]


