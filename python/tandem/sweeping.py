"""Many steps at once: the points of a study."""

from __future__ import annotations

import csv
import html
import itertools
import json
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union, cast

from .answers import StepResult
from .command import Command, Folder, options, slurm_options
from .errors import InputError
from .record import data_frame
from .report import Report
from .scenario import Scenario, as_json, content_of, path_of

if TYPE_CHECKING:
    import pandas


class Point(NamedTuple):
    """A point of a study: the fields that vary, and how it ended.

    status: done, oom (simulated, does not fit), refused (the scenario is wrong) or failed. message: why, of the last two.
    step: the result of the first two.
    """

    fields: Dict[str, Any]
    status: str
    message: str
    step: Optional[StepResult]


class SweepResult(Sequence[Point]):
    """The points of a study, in its order. database: the file that has them, for the next sweep to go on from."""

    def __init__(self, points: List[Point], database: Path, text: str, command: Command) -> None:
        self.points = points
        self.database = database
        self._text = text
        self._command = command

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: Any) -> Any:
        return self.points[index]

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __str__(self) -> str:
        """What the command prints."""
        return self._text

    def __repr__(self) -> str:
        done = sum(point.status == "done" for point in self.points)
        return f"SweepResult of {len(self.points)} points, {done} done, in {self.database}"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self._text)}</pre>"

    def table(self) -> List[Dict[str, Any]]:
        """A row for each point: its fields, status, and every key of its result that is no list."""
        return [
            {**point.fields, "status": point.status, **(point.step.flat() if point.step else {"message": point.message})}
            for point in self.points
        ]

    def frame(self) -> pandas.DataFrame:
        """The rows of `table` as a DataFrame."""
        return data_frame(self.table())

    def report(self) -> Report:
        """The HTML page of the study. Its points are not simulated again."""
        return self._command.report(accepted=(0, 1))


def sweep(
    scenario: Scenario,
    grid: Optional[Mapping[str, Any]] = None,
    points: Optional[Iterable[Mapping[str, Any]]] = None,
    *,
    fields: Optional[Mapping[str, Any]] = None,
    name: Optional[str] = None,
    skip_invalid: bool = False,
    database: Optional[Union[str, os.PathLike[str]]] = None,
    jobs: Optional[int] = None,
    slurm: Optional[int] = None,
    sbatch: Union[str, Iterable[str]] = (),
    progress: Optional[bool] = None,
) -> SweepResult:
    """Simulates every cell of the grid at every point, each once.

    scenario: as for `simulate`; or a study, by its path, then without grid and points. grid: values by field, such as
    `{"parallelism.tp": [4, 8]}`; the last one varies fastest. points: fields that change together. fields: for all points.
    skip_invalid: makes rows of what a scenario refuses, which otherwise raises InputError before the first point. database:
    keeps the points; what is in it is not simulated again. Without it they last as long as the result. slurm: how many tasks of a
    Slurm array simulate, in place of this machine; sbatch: what sbatch is told besides. Points that fail are rows with their
    message.
    """
    folder = Folder()
    if grid is None and points is None:
        if content_of(scenario) is not None or fields or name or skip_invalid:
            raise InputError("a sweep needs a grid or points, or the path of a study, which says the rest itself")
        study = os.fspath(cast("os.PathLike[str]", scenario))
    else:
        study = str(folder / "study.json")
        inner: Any = content_of(scenario)
        if inner is None:
            inner = str(Path(path_of(scenario, folder.path)).resolve())
        content: Dict[str, Any] = {"name": name or "study", "scenario": inner, "skip_invalid": skip_invalid}
        content["grid"] = {field: _values_of(field, values) for field, values in (grid or {}).items()}
        content["points"] = [dict(point) for point in points] if points is not None else None
        content["set"] = dict(fields) if fields else None
        Path(study).write_text(as_json({key: value for key, value in content.items() if value}), encoding="utf-8")
    kept = Path(database) if database is not None else folder / "study.sqlite"
    flags = options({"--out": kept, "--jobs": jobs}) + slurm_options(slurm, sbatch, database is not None)
    arguments = ["sweep", study, *flags]
    command = Command(arguments, folder, progress)
    table = folder / "points.csv"
    ended = command.run("--csv", str(table), accepted=(0, 1))
    if not table.exists():
        command.fail(ended)
    swept = _points(table, kept)
    if grid is not None or points is not None:
        given = _cells(content.get("grid") or {}, content.get("points") or [{}])
        swept = [point._replace(fields=fields_) for point, fields_ in zip(swept, given)]
    return SweepResult(swept, kept, ended.out, command)


def _cells(grid: Mapping[str, List[Any]], points: List[Dict[str, Any]]) -> Iterator[Dict[str, Any]]:
    """The fields of each point, in the order of a study; the database has text and numbers alone."""
    for point in points:
        for values in itertools.product(*grid.values()):
            yield {**point, **dict(zip(grid, values))}


def _values_of(field: str, values: Any) -> List[Any]:
    if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
        raise InputError(f"the grid has {values!r} for {field}, expected a list of values")
    return list(values)


def _points(table: Path, database: Path) -> List[Point]:
    """The swept points: the table says which, the database has them whole."""
    with open(table, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = list(rows[0]) if rows else []
    varied = columns[columns.index("point") + 1 : columns.index("status")] if rows else []
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in varied)
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return [_point(connection, row["hash"], varied, names) for row in rows]
    finally:
        connection.close()


def _point(connection: sqlite3.Connection, key: str, varied: List[str], names: str) -> Point:
    query = f"SELECT status, message, json{', ' + names if names else ''} FROM points WHERE hash = ?"
    status, message, text, *values = connection.execute(query, (key,)).fetchone()
    step = StepResult(json.loads(text)) if text else None
    return Point(dict(zip(varied, values)), status, message or "", step)
