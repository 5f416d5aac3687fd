"""A command of Tandem that writes JSON: run, read, and run again for its report."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
import weakref
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, NoReturn, Optional, Sequence, Union

from .errors import InputError, TandemWarning, error_of
from .program import Ended, run
from .report import Report
from .scenario import GIVEN

_WARNING = "tandem: warning: "


class Folder:
    """A folder of ours for the files of a command, as long as somebody needs it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="tandem-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def __truediv__(self, name: str) -> Path:
        return self.path / name


class Command:
    """Arguments that were run, with the folder of the files that they name."""

    def __init__(self, arguments: Sequence[str], folder: Folder, progress: Optional[bool] = None) -> None:
        self.arguments = list(arguments)
        self.folder = folder
        self.progress = progress
        self.ended: Optional[Ended] = None

    def run(self, *more: str, accepted: Sequence[int] = (0,)) -> Ended:
        """Runs it, and passes warnings on. Raises TandemError for an exit code that is not `accepted`."""
        ended = run([*self.arguments, *more], self.progress)
        if self.ended is None:
            for line in ended.err.splitlines():
                if line.startswith(_WARNING):
                    warnings.warn(line[len(_WARNING) :], TandemWarning, stacklevel=4)
        self.ended = ended
        if ended.exit_code not in accepted:
            self.fail(ended)
        return ended

    def fail(self, ended: Ended) -> NoReturn:
        """Raises what the exit code stands for. A mapping has no lines for a place to count."""
        error = error_of(ended.exit_code, ended.err, ended.command)
        given = f"{self.folder / GIVEN}:"
        if error.sentence.startswith(given):
            error.sentence = "the scenario: " + error.sentence[len(given) :].lstrip("0123456789:").strip()
            error.args = (error.sentence,)
        raise error

    def json(self, accepted: Sequence[int] = (0,)) -> Dict[str, Any]:
        """Runs it with --json. An exit code besides 0 is accepted only where a result was written."""
        file = self.folder / "result.json"
        ended = self.run("--json", str(file), accepted=(0, *accepted))
        if ended.exit_code != 0 and not file.exists():
            self.fail(ended)
        values: Dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return values

    def report(self, accepted: Sequence[int] = (0,)) -> Report:
        """Runs it once more with --report."""
        file = self.folder / "report.html"
        self.run("--report", str(file), accepted=accepted)
        return Report(file.read_text(encoding="utf-8"))

    @property
    def text(self) -> str:
        """What it printed."""
        return self.ended.out if self.ended else ""


def options(values: Mapping[str, Any]) -> List[str]:
    """`{"--jobs": 4, "--core": True, "--csv": None}` as words: `--jobs 4 --core`."""
    words: List[str] = []
    for name, value in values.items():
        if value is True:
            words.append(name)
        elif value is not None and value is not False:
            words += [name, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    return words


def slurm_options(tasks: Optional[int], sbatch: Union[str, Iterable[str]], has_database: bool) -> List[str]:
    """The options of a command whose steps a Slurm array simulates. Its nodes do not see this machine's temporary folders."""
    words = [sbatch] if isinstance(sbatch, str) else list(sbatch)
    if tasks is None:
        if words:
            raise InputError("sbatch is told something, but slurm is None; expected how many tasks the array has")
        return []
    if not has_database:
        raise InputError("slurm needs a database, in a folder that all nodes see")
    return [f"--slurm={tasks}", *(f"--sbatch={word}" for word in words)]
