"""What a command of Tandem ends with when it does not end well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Sequence, Type

if TYPE_CHECKING:
    from . import results


class TandemWarning(UserWarning):
    """What is possible but unwise, with its place in the scenario."""


class TandemError(Exception):
    """A command that ended with an exit code other than 0.

    sentence: why, as Tandem says it. detail: all that it said on standard error. command: what was run.
    """

    exit_code: int = 1

    def __init__(self, sentence: str, *, exit_code: Optional[int] = None, detail: str = "", command: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.detail = detail
        self.command = list(command)
        if exit_code is not None:
            self.exit_code = exit_code


class RunFailed(TandemError):
    """The run failed (hardware, I/O): exit code 1, or a signal."""


class InputError(TandemError):
    """The input is wrong: exit code 2. The sentence has the place, what was expected and the nearest valid name."""

    exit_code = 2


class DoesNotFit(TandemError):
    """The scenario does not fit in memory: exit code 3. `detail` has the breakdown, and what would relieve it.

    search: of a search in which nothing fits, what it found; `search.nearest` is the plan that lacks least.
    """

    exit_code = 3
    search: Optional[results.Search] = None


class ProgramNotFound(TandemError):
    """There is no program `tandem`."""


EXIT_CODES: dict[int, Type[TandemError]] = {1: RunFailed, 2: InputError, 3: DoesNotFit}


def error_of(exit_code: int, said: str, command: Sequence[str]) -> TandemError:
    """The exception for an exit code; the last line that was said is the sentence."""
    lines = [line for line in said.splitlines() if line.strip()]
    if exit_code < 0:
        return RunFailed(f"tandem was ended by signal {-exit_code}", exit_code=exit_code, detail=said, command=command)
    sentence = lines[-1].removeprefix("tandem: ") if lines else f"tandem ended with exit code {exit_code}"
    return EXIT_CODES.get(exit_code, RunFailed)(sentence, exit_code=exit_code, detail=said, command=command)
