"""HTML pages that notebooks show inline."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Union


class Report:
    """A page of Tandem (docs/report.md): one HTML file that needs nothing else."""

    def __init__(self, page: str, height: int = 720) -> None:
        self.html = page
        self.height = height

    def save(self, path: Union[str, os.PathLike[str]]) -> Path:
        """Writes the page, to be opened in any browser."""
        target = Path(path)
        target.write_text(self.html, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        frame = "sandbox='allow-scripts' style='width: 100%; border: 1px solid #ccc'"
        return f'<iframe {frame} height="{self.height}" srcdoc="{html.escape(self.html)}"></iframe>'

    def __repr__(self) -> str:
        return f"Report of {len(self.html.encode()) / 1e6:.1f} MB; save(path) writes it, a notebook shows it"
