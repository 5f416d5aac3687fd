"""Finds the program `tandem` and runs it: a process, its output, its progress."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Iterator, List, NamedTuple, Optional, Sequence

from .errors import ProgramNotFound

_CLEAR_LINE = "\r\x1b[K"  # before each state of a progress line, as cli/terminal/line.cpp writes it


class Ended(NamedTuple):
    """A process that has ended. exit_code is negative where a signal ended it."""

    command: List[str]
    exit_code: int
    out: str
    err: str


def _beside_the_package() -> Iterator[Path]:
    package = Path(__file__).resolve().parent
    yield package / "bin" / "tandem"
    yield package.parent.parent / "build" / "release" / "tandem"  # in the sources
    for folder in package.parents:
        if folder.name == "lib":  # PREFIX/lib/python3/dist-packages/tandem
            yield folder.parent / "bin" / "tandem"


def find_program() -> Path:
    """The program: $TANDEM where it is set, else beside this package, else in the PATH. Raises ProgramNotFound."""
    named = os.environ.get("TANDEM")
    if named:
        found = shutil.which(named)
        if found is None:
            raise ProgramNotFound(f"TANDEM is {named}, which is no program")
        return Path(found).resolve()
    for path in _beside_the_package():
        if path.is_file() and os.access(path, os.X_OK):
            return path
    found = shutil.which("tandem")
    if found is None:
        raise ProgramNotFound("there is no program tandem: set TANDEM to its path, or add its folder to PATH")
    return Path(found).resolve()


def data_folder() -> Optional[Path]:
    """The folder of shipped scenarios that belongs to the program; None where it has none."""
    prefix = find_program().parent.parent
    for folder in (prefix / "share" / "tandem" / "scenarios", prefix.parent / "scenarios"):
        if (folder / "tiny-host.yaml").is_file():
            return folder
    return None


def _shows_progress() -> bool:
    """Whether a person watches: a terminal, or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class _ProgressLine:
    """Takes what a process writes to a terminal apart: states of its progress line are shown, the rest is kept."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._pending = ""  # since the last state was begun, or the last line ended
        self._is_state = False
        self._shown = ""
        self._width = 0
        self.kept = ""

    def take(self, text: str) -> None:
        first, *rest = (self._pending + text).split(_CLEAR_LINE)
        self._put(first)
        for part in rest:
            self._is_state = True
            self._put(part)

    def end(self) -> None:
        if not self._is_state:
            self.kept += self._pending
        if self._shown:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()

    def _put(self, part: str) -> None:
        """A state ends where the next one begins, or was taken away; a line has an end of its own."""
        whole, newline, self._pending = part.rpartition("\n")
        if newline:
            self.kept += whole + newline
            self._is_state = False
        elif self._is_state and part and part != _CLEAR_LINE[: len(part)]:
            self._show(part.rstrip("\r"))

    def _show(self, state: str) -> None:
        if state == self._shown:
            return
        self._stream.write("\r" + state.ljust(self._width))
        self._stream.flush()
        self._shown = state
        self._width = max(self._width, len(state))


def _read_terminal(descriptor: int, line: _ProgressLine) -> None:
    while True:
        try:
            chunk = os.read(descriptor, 4096)
        except OSError as error:  # Linux says so when the other end is closed
            if error.errno != errno.EIO:
                raise
            chunk = b""
        if not chunk:
            return
        line.take(chunk.decode(errors="replace"))


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that nobody waits for any more, and those that it started."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    except ProcessLookupError:
        process.wait()


def run(arguments: Sequence[str], progress: Optional[bool] = None) -> Ended:
    """Runs `tandem ARGUMENTS` without a shell and waits for it.

    progress: whether its progress line is shown on standard error; by default, where a person watches. An exception, such as
    Ctrl-C, ends the process.
    """
    command = [str(find_program()), *arguments]
    shows = _shows_progress() if progress is None else progress
    with tempfile.TemporaryFile() as out:
        err = _run_on_terminal(command, out) if shows else _run_quietly(command, out)
        out.seek(0)
        return Ended(command, err[0], out.read().decode(errors="replace"), err[1])


def _run_quietly(command: List[str], out: IO[bytes]) -> tuple[int, str]:
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        _, err = process.communicate()
    except BaseException:
        _stop(process)
        raise
    return process.returncode, err.decode(errors="replace")


def _run_on_terminal(command: List[str], out: IO[bytes]) -> tuple[int, str]:
    """Tandem draws its progress on terminals alone, so it gets one for its standard error."""
    import pty
    import termios

    ours, theirs = pty.openpty()
    try:
        attributes = termios.tcgetattr(theirs)
        attributes[1] &= ~termios.OPOST  # lines end as they were written
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        columns = str(max(40, shutil.get_terminal_size((100, 24)).columns))
        environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": columns}
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=theirs, start_new_session=True, env=environment
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    line = _ProgressLine(sys.stderr)
    try:
        _read_terminal(ours, line)
        process.wait()
    except BaseException:
        _stop(process)
        raise
    finally:
        line.end()
        os.close(ours)
    return process.returncode, line.kept
