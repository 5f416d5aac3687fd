#!/usr/bin/env python3
"""Runs the code of notebooks as Jupyter does: cell by cell, showing the value of a cell's last expression. Needs no Jupyter."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any, Dict, List


def code_of(path: Path) -> List[str]:
    """The code cells."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def shown_by(source: str, names: Dict[str, Any], name: str) -> str:
    """Runs a cell; what a notebook would show of its value: HTML where it has any."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    if not isinstance(last, ast.Expr):
        return ""
    value = eval(compile(ast.Expression(last.value), name, "eval"), names)
    as_html = getattr(value, "_repr_html_", None)
    return "" if value is None else str(as_html() if as_html else repr(value))


def run(path: Path) -> List[str]:
    """What each code cell of the notebook shows, besides what it prints."""
    names: Dict[str, Any] = {"__name__": "__main__"}
    return [shown_by(source, names, f"{path.name} [{i}]") for i, source in enumerate(code_of(path), 1)]


if __name__ == "__main__":
    for file in sys.argv[1:]:
        for output in run(Path(file)):
            print(output[:2000])
