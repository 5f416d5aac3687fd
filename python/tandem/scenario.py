"""What a caller gives as a scenario, and fields that override it, as a file and arguments of the program."""

from __future__ import annotations

import difflib
import json
import os
from pathlib import Path
from typing import Any, List, Mapping, Optional, Union, cast

from .errors import InputError
from .program import data_folder

Scenario = Union[str, "os.PathLike[str]", Mapping[str, Any]]
"""A path of a YAML file, the name of a shipped scenario, or the scenario itself as a mapping."""

GIVEN = "scenario.json"  # the file of a mapping


def as_json(value: Any) -> str:
    """The value as JSON, which is YAML, too. Paths are text; numbers of numpy and pandas are numbers."""

    def other(thing: Any) -> Any:
        if isinstance(thing, os.PathLike):
            return os.fspath(thing)
        if isinstance(thing, Mapping):
            return dict(thing)
        if hasattr(thing, "tolist"):
            return thing.tolist()
        raise InputError(f"{thing!r} is a {type(thing).__name__}, which a scenario cannot hold")

    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=other)
    except ValueError as error:
        raise InputError(f"a scenario cannot hold {value!r}: {error}") from error


def shipped_scenarios() -> List[str]:
    """Names of the scenarios that come with Tandem, for `simulate(NAME)`."""
    folder = data_folder()
    return sorted(path.stem for path in folder.glob("*.yaml")) if folder else []


def scenario_path(name: str) -> Path:
    """The file of a shipped scenario. Raises InputError for a name that is none."""
    folder = data_folder()
    path = folder / f"{name}.yaml" if folder else None
    if path and path.is_file():
        return path
    names = shipped_scenarios()
    near = difflib.get_close_matches(name, names, 3)
    hint = f"; nearest: {', '.join(near)}" if near else "" if names else "; none came with this program"
    raise InputError(f"{name} is neither a file nor a shipped scenario{hint}")


def content_of(scenario: Scenario) -> Optional[Mapping[str, Any]]:
    """The scenario itself where it was given; a result that lies in a file is a mapping of other things."""
    return scenario if isinstance(scenario, Mapping) and not isinstance(scenario, os.PathLike) else None


def path_of(scenario: Scenario, folder: Path) -> str:
    """The path of a scenario; a mapping that is no path is written into `folder`."""
    content = content_of(scenario)
    if content is not None:
        path = folder / GIVEN
        path.write_text(as_json(content), encoding="utf-8")
        return str(path)
    text = os.fspath(cast("os.PathLike[str]", scenario))
    is_path = not isinstance(scenario, str) or os.path.sep in text or text.endswith((".yaml", ".yml", ".json"))
    return text if is_path or os.path.exists(text) else str(scenario_path(text))


def overrides(fields: Optional[Mapping[str, Any]], more: Mapping[str, Any]) -> List[str]:
    """Options `--set` for fields by path, `{"parallelism.tp": 4}`, and by keyword, `parallelism__tp=4`."""
    chosen = {**(fields or {}), **{name.replace("__", "."): value for name, value in more.items()}}
    return [word for path, value in chosen.items() for word in ("--set", f"{path}={as_json(value)}")]
