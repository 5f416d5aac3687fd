"""Tandem, a digital twin for one LLM training step on a GPU cluster, from Python.

    import tandem

    step = tandem.simulate("llama3-70b-512", training__overlap__tp=True)
    print(step.step_time_s, step.mfu)

Every function runs the program `tandem` and returns what it writes as JSON, with the keys as attributes (docs/json.md).
"""

from .answers import (
    CampaignResult,
    DiffResult,
    ExplainedRunResult,
    Imported,
    LintResult,
    MeasuredStepResult,
    PlacementResult,
    SearchResult,
    StepResult,
    TopologyResult,
    TracedStepResult,
    ValidationResult,
)
from .commands import (
    campaign,
    compare_with_traces,
    crosscheck,
    diff,
    execute,
    explain_run,
    lint,
    place,
    search,
    simulate,
    topology,
    validate,
    version,
)
from .errors import DoesNotFit, InputError, ProgramNotFound, RunFailed, TandemError, TandemWarning
from .files import Exported, Profile, calibrate, export, import_, import_traces, lower
from .program import find_program, run
from .record import Named, Record
from .report import Report
from .scenario import scenario_path, shipped_scenarios
from .sweeping import Point, SweepResult, sweep

__all__ = [
    "CampaignResult",
    "DiffResult",
    "DoesNotFit",
    "ExplainedRunResult",
    "Exported",
    "Imported",
    "InputError",
    "LintResult",
    "MeasuredStepResult",
    "Named",
    "PlacementResult",
    "Point",
    "Profile",
    "ProgramNotFound",
    "Record",
    "Report",
    "RunFailed",
    "SearchResult",
    "StepResult",
    "SweepResult",
    "TandemError",
    "TandemWarning",
    "TopologyResult",
    "TracedStepResult",
    "ValidationResult",
    "calibrate",
    "campaign",
    "compare_with_traces",
    "crosscheck",
    "diff",
    "execute",
    "explain_run",
    "export",
    "find_program",
    "import_",
    "import_traces",
    "lint",
    "lower",
    "place",
    "run",
    "scenario_path",
    "search",
    "shipped_scenarios",
    "simulate",
    "sweep",
    "topology",
    "validate",
    "version",
]
