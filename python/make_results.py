#!/usr/bin/env python3
"""Writes tandem/results.py, the classes of results, from the tables of docs/json.md; --check only says whether it is up to date."""

from __future__ import annotations

import argparse
import difflib
import keyword
import re
import sys
import textwrap
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional

PYTHON = Path(__file__).resolve().parent
DOCUMENT = PYTHON.parent / "docs" / "json.md"
TARGET = PYTHON / "tandem" / "results.py"

# The sections that are a result by themselves, and the objects with tables of their own.
CLASSES = {
    "A step": "Step",
    "A search": "Search",
    "A lint": "Lint",
    "A diff": "Diff",
    "A campaign": "Campaign",
    "A placement": "Placement",
    "A topology": "Topology",
    "A validation": "Validation",
    "An explained run": "ExplainedRun",
    "A measured step": "MeasuredStep",
    "An import": "Import",
    "A traced step": "TracedStep",
    "PARTS": "Parts",
    "KIND": "Kind",
    "INTERVAL": "Interval",
    "CROSSCHECK": "CrossCheck",
    "PLAN": "Plan",
    "RELIEF": "Relief",
    "SPREAD": "Spread",
    "RUN": "Run",
}

TYPES = {
    "text": "str",
    "tensors, allocated, reserved or device": "str",
    "true or false": "bool",
    "bool": "bool",
    "as the field": "Any",
    "as the column": "Any",
    "list": "List[Any]",
    "object": "Mapping[str, Any]",
    "list of texts": "List[str]",
    "texts": "List[str]",
    "numbers": "List[int]",
    "list of nodes": "List[int]",
    "list of GPUs": "List[int]",
    "list of choices": "List[float]",
}
# Units of what is counted one by one; every other number may be a mean, or has a unit that is measured.
COUNTS = {
    "GPUs", "NICs", "cables", "campaigns", "classes", "combinations", "communicators", "index", "pairs", "plans", "planes", "pods",
    "ports", "rank", "ranks", "replicas", "rows", "runs", "sources", "switches", "tiers", "times",
}  # fmt: skip

METHODS = {"keys", "items", "values", "get", "to_dict", "flat", "frame", "table", "report", "save", "markdown", "read", "exit_code"}


class Row(NamedTuple):
    key: str
    unit: str
    meaning: str


class Node:
    """A key and the keys below it."""

    def __init__(self) -> None:
        self.row: Optional[Row] = None
        self.is_list = False
        self.children: Dict[str, Node] = {}


def is_name(text: str) -> bool:
    return text.isalpha() and text.isupper()


def rows_of(text: str) -> Iterator[tuple[str, Row]]:
    """The class and the row of each key."""
    section = ""
    for line in text.splitlines():
        if line.startswith("## "):
            section = line[3:]
        match = re.fullmatch(r"\| `([^`]+)` \| ([^|]+) \| (.+) \|", line)
        if not match:
            continue
        row = Row(match[1], match[2], match[3])
        first, _, rest = row.key.partition(".")
        if is_name(first):
            yield CLASSES[first], row._replace(key=rest)
        elif section in CLASSES:
            yield CLASSES[section], row


def trees_of(text: str) -> Dict[str, Node]:
    trees: Dict[str, Node] = {}
    for name, row in rows_of(text):
        node = trees.setdefault(name, Node())
        for part in row.key.split("."):
            node = node.children.setdefault(part.removesuffix("[]"), Node())
            if part.endswith("[]"):
                node.is_list = True
        if row.key.endswith("[]"):
            node.row = (node.row or row)._replace(unit=row.unit)
        else:
            node.row = row
    return trees


def camel(text: str, is_list: bool) -> str:
    words = re.sub(r"_(s|bytes)$", "", text).split("_")
    if is_list:
        last = words[-1]
        words[-1] = last[:-3] + "y" if last.endswith("ies") else last[:-2] + "is" if last == "axes" else last.removesuffix("s")
    return "".join(word[:1].upper() + word[1:] for word in words)


def plain(markdown: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown).replace("`", "").replace("*Sometimes.*", "").strip()
    return text.replace("\\", "")


def may_lack(row: Row) -> bool:
    return "*Sometimes.*" in row.meaning or "Left out where" in row.meaning or "null" in row.meaning


class Writer:
    def __init__(self) -> None:
        self.lines: List[str] = []

    def put(self, name: str, node: Node, about: str) -> None:
        """Writes the class `name`, after the classes that it needs."""
        body: List[str] = []
        for key, child in node.children.items():
            assert child.row is not None, f"docs/json.md has no row for {name}.{key}"
            assert key not in METHODS, f"{name}.{key} is named like a method of a result"
            kind = self.type_of(name, key, child)
            if may_lack(child.row):
                kind = f"Optional[{kind}]"
            unit = "" if child.row.unit in TYPES or child.row.unit in CLASSES else f" [{child.row.unit}]"
            body.append(f"    {key + '_' if keyword.iskeyword(key) else key}: {kind}")
            body += docstring(plain(child.row.meaning) + unit)
        self.lines += ["", "", f"class {name}(Record):", *docstring(about), "", *body]

    def type_of(self, parent: str, key: str, node: Node) -> str:
        assert node.row is not None
        unit = node.row.unit
        if unit in CLASSES:
            kind = CLASSES[unit]
        elif len(node.children) == 1 and is_name(next(iter(node.children))):
            kind = f"Named[{self.type_of(parent, key, next(iter(node.children.values())))}]"
        elif node.children:
            kind = parent + camel(key, node.is_list)
            self.put(kind, node, plain(node.row.meaning))
        elif unit.endswith(", a range"):
            kind = "List[float]"
        else:
            kind = TYPES.get(unit, "int" if unit in COUNTS else "float")
        return f"List[{kind}]" if node.is_list else kind


def docstring(text: str) -> List[str]:
    return textwrap.wrap(f'"""{text}"""', width=120, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


def source_of(text: str) -> str:
    writer = Writer()
    trees = trees_of(text)
    titles = {name: title for title, name in CLASSES.items()}
    order = [name for name in CLASSES.values() if is_name(titles[name])]
    order += [name for name in CLASSES.values() if not is_name(titles[name])]
    for name in order:
        title = titles[name]
        about = f"{title}, as docs/json.md has it." if is_name(title) else f"{title}: its keys as attributes."
        writer.put(name, trees[name], about)
    text_of_classes = "\n".join(writer.lines)
    names = [name for name in ("Any", "List", "Mapping", "Optional") if re.search(rf"\b{name}\b", text_of_classes)]
    head = [
        '"""The results of Tandem, key by key. Made by make_results.py from docs/json.md: do not edit."""',
        "",
        "from __future__ import annotations",
        "",
        f"from typing import {', '.join(names)}",
        "",
        "from .record import Named, Record",
    ]
    return "\n".join(head + writer.lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    source = source_of(DOCUMENT.read_text(encoding="utf-8"))
    if not check:
        TARGET.write_text(source, encoding="utf-8")
        return 0
    there = TARGET.read_text(encoding="utf-8")
    sys.stdout.writelines(difflib.unified_diff(there.splitlines(True), source.splitlines(True), "results.py", "docs/json.md"))
    return int(source != there)


if __name__ == "__main__":
    sys.exit(main())
