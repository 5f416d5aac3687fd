"""What the commands answer: results with what a notebook shows of them."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Union

from . import results
from .command import Command, Folder
from .record import Record, data_frame
from .report import Report

if TYPE_CHECKING:
    import pandas


class _Answer(Record):
    """A result and the command that it comes from."""

    __slots__ = ("_command", "_text", "_report")

    def __init__(self, values: Mapping[str, Any], command: Optional[Command] = None) -> None:
        super().__init__(values)
        self._command = command
        self._text = command.text if command else ""
        self._report: Optional[Report] = None

    def __str__(self) -> str:
        """What the command prints."""
        return self._text or repr(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def save(self, path: Union[str, os.PathLike[str]]) -> Path:
        """Writes the JSON result, which `tandem diff` and `tandem.diff` read."""
        target = Path(path)
        target.write_text(json.dumps(self.to_dict(), indent=1) + "\n", encoding="utf-8")
        return target


class _Reported(_Answer):
    """One whose command has --report."""

    __slots__ = ()

    def report(self) -> Report:
        """The HTML page of this result, which a notebook shows inline. The command runs once more for it, the first time.

        The page of a result that was read from a file, or comes from a sweep, has no timeline.
        """
        if self._report is None:
            self._report = self._command.report() if self._command else self._without_timeline()
        return self._report


    def _without_timeline(self) -> Report:
        folder = Folder()
        page = folder / "report.html"
        Command(["report", str(self.save(folder / "result.json")), "--out", str(page)], folder).run()
        return Report(page.read_text(encoding="utf-8"))


class StepResult(_Reported, results.Step):
    """A simulated or executed step. `str()` is the text that the command prints."""

    __slots__ = ()

    @classmethod
    def read(cls, path: Union[str, os.PathLike[str]]) -> StepResult:
        """A result that `--json` or `save` wrote."""
        return cls(json.loads(Path(path).read_text(encoding="utf-8")))


class SearchResult(_Reported, results.Search):
    """The best plans."""

    __slots__ = ()

    def frame(self) -> pandas.DataFrame:
        """The best plans, one in a row: its fields, step time, parts and memory."""
        return data_frame(self.table())

    def table(self) -> list[Dict[str, Any]]:
        """The rows of `frame`."""
        return [{**plan.fields, **{key: value for key, value in plan.flat().items() if not key.startswith("fields.")}} for plan in self.best]


class LintResult(_Answer, results.Lint):
    """Findings, the dearest first. exit_code: 0 nothing worse than advice, 1 a warning or an error, 2 refused, 3 does not fit."""

    __slots__ = ()

    @property
    def exit_code(self) -> int:
        """That of the command."""
        return self._command.ended.exit_code if self._command and self._command.ended else 0


class DiffResult(_Reported, results.Diff):
    """What changed from one result to another."""

    __slots__ = ()

    def markdown(self) -> str:
        """The same as Markdown, for a comment on a change."""
        if self._command is None:
            raise ValueError("this difference was read from a file")
        return self._command.run("--markdown", "-").out


class CampaignResult(_Answer, results.Campaign):
    """Weeks of training."""

    __slots__ = ()


class PlacementResult(_Answer, results.Placement):
    """Ranks on free nodes, beside the packed placement."""

    __slots__ = ()


class TopologyResult(_Answer, results.Topology):
    """The cluster, its links, and where each communicator lies."""

    __slots__ = ()


class ValidationResult(_Reported, results.Validation):
    """Predictions of measured runs, and how far they are off."""

    __slots__ = ()

    def frame(self) -> pandas.DataFrame:
        """The runs, one in a row."""
        return data_frame([row.flat() for row in self.rows])


class MeasuredStepResult(_Answer, results.MeasuredStep):
    """A simulated step beside what torch.profiler traced of it."""

    __slots__ = ()


class TracedStepResult(_Answer, results.TracedStep):
    """Where the time of a step went on each rank that torch.profiler traced."""

    __slots__ = ()

    @classmethod
    def read(cls, path: Union[str, os.PathLike[str]]) -> TracedStepResult:
        """A result that `tandem import --from kineto` or `save` wrote."""
        return cls(json.loads(Path(path).read_text(encoding="utf-8")))


class Imported(_Answer, results.Import):
    """What another program's file became, which is a file, too: a scenario, for most sources. path: that file."""

    __slots__ = ("path",)

    def __init__(self, values: Mapping[str, Any], command: Optional[Command], path: Path) -> None:
        super().__init__(values, command)
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        """The file."""
        return self.path.read_text(encoding="utf-8", errors="replace")


class ExplainedRunResult(_Answer, results.ExplainedRun):
    """Where the time of one run goes, and what is like it."""

    __slots__ = ()
