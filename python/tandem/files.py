"""Commands whose answer is a file: what other programs wrote, or want to read; graphs; profiles."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Union

from .answers import Imported, TracedStepResult
from .command import Command, Folder, options
from .commands import AnyPath, Fields, on_scenario, runs_file
from .errors import InputError
from .scenario import Scenario, overrides, path_of


class Exported:
    """A scenario in the words of another program.

    text: the file; empty where it was written elsewhere, to `path`. lost: what that program has no word for, a sentence each.
    """

    def __init__(self, text: str, lost: List[str], path: Optional[Path] = None) -> None:
        self.text = text
        self.lost = lost
        self.path = path

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Exported of {len(self.text.splitlines())} lines, {len(self.lost)} things not expressed"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"

    def save(self, path: AnyPath) -> Path:
        """Writes the file."""
        target = Path(path)
        target.write_text(self.text, encoding="utf-8")
        return target


class Profile:
    """Measured times of kernels and collectives, in a file, for `simulate(..., profile=profile)`. `str()` says what was measured."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._text = text

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Profile({str(self.path)!r})"


def _paths_of(files: Union[AnyPath, Iterable[AnyPath]]) -> List[str]:
    paths: Sequence[AnyPath] = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    if not paths:
        raise InputError("nothing is to be read, expected at least one path")
    return [os.fspath(path) for path in paths]


def import_(
    files: Union[AnyPath, Iterable[AnyPath]],
    fields: Fields = None,
    /,
    *,
    source: str,
    gpus: Optional[int] = None,
    cluster: Optional[str] = None,
    env: Optional[Mapping[str, Any]] = None,
    out: Optional[AnyPath] = None,
    **more: Any,
) -> Imported:
    """Reads what another program wrote.

    source: which one, as the command's `--from` has it ("hf", "megatron", ...). fields, and keywords beside the options: what is
    overridden in the scenario. gpus: how many there are; cluster: its preset; env: variables that a script reads. out: the file
    to write; by default it lasts as long as the result.

    The result is the path of what the file became, which for most sources every function takes for a scenario:
    `simulate(import_("Llama-3.1-8B", source="hf", gpus=64))`. What was assumed, and what has no counterpart, it has as lists.
    """
    folder = Folder()
    path = Path(out) if out is not None else folder / "imported.yaml"
    flags = options({"--from": source, "--gpus": gpus, "--cluster": cluster, "--out": path})
    for name, value in (env or {}).items():
        flags += ["--env", f"{name}={value}"]
    command = Command(["import", *_paths_of(files), *overrides(fields, more), *flags], folder, False)
    return Imported(command.json(), command, path)


def import_traces(files: Union[AnyPath, Iterable[AnyPath]], /, *, step: Optional[int] = None) -> TracedStepResult:
    """Reads traces of torch.profiler, files or folders with one of each rank: where the time of a step went. step: the N of a
    ProfilerStep#N; by default a typical one."""
    folder = Folder()
    path = folder / "step.json"
    flags = options({"--from": "kineto", "--step": step, "--out": path})
    command = Command(["import", *_paths_of(files), *flags], folder, False)
    command.run()
    return TracedStepResult.read(path)


def export(
    scenario: Scenario,
    fields: Fields = None,
    /,
    *,
    to: str,
    out: Optional[AnyPath] = None,
    ranks: Optional[str] = None,
    **more: Any,
) -> Exported:
    """Writes a scenario as another program wants it: to "megatron", "torchtitan", "nccl", "scenario", ...

    out: where to; without it the result has the text. To "chakra" it is a folder, and ranks, such as "0,5,16-31", are those whose
    traces are written.
    """
    command = on_scenario("export", scenario, fields, more, False, to=to, out=out, ranks=ranks)
    ended = command.run()
    mark = "tandem: not expressed: "
    lost = [line[len(mark) :] for line in ended.err.splitlines() if line.startswith(mark)]
    return Exported(ended.out, lost, None if out is None else Path(out))


def lower(scenario: Scenario, fields: Fields = None, /, *, out: AnyPath, folded: bool = False, **more: Any) -> Path:
    """Writes the graph of the step into a file, for `tandem-run` to execute elsewhere. folded: one rank of each class, to be
    simulated; without it all ranks, to be executed."""
    on_scenario("lower", scenario, fields, more, False, out=os.fspath(out), folded=folded).run()
    return Path(out)


def calibrate(
    out: AnyPath,
    /,
    *,
    backend: Optional[str] = None,
    scenarios: Iterable[Scenario] = (),
    shapes: Optional[AnyPath] = None,
    runs: Union[None, AnyPath, Iterable[Mapping[str, Any]], Any] = None,
    all_grids: bool = False,
    budget: Optional[float] = None,
    progress: Optional[bool] = None,
) -> Profile:
    """Measures kernels and collectives of this machine, on CPU threads (backend="host") or GPUs ("cuda"), or learns from runs.

    out: the profile to write; a readable one goes beside it. scenarios: those whose kernels are measured first. shapes: a file that
    lists more. budget: seconds to spend. runs: measured steps of a site, as `validate` takes them, in place of a backend.
    """
    folder = Folder()
    flags = options({"--backend": backend, "--shapes": shapes, "--all-grids": all_grids, "--budget": budget, "--out": out})
    if runs is not None:
        flags += ["--runs", runs_file(runs, folder)]
    for number, scenario in enumerate(scenarios):
        inner = folder / str(number)
        inner.mkdir()
        flags += ["--scenario", path_of(scenario, inner)]
    ended = Command(["calibrate", *flags], folder, progress).run()
    return Profile(Path(out), ended.out)
