// One page per kind of report.
import {page, type Chapter} from "./page";
import type {
  CrosscheckReport,
  DiffReport,
  FailureReport,
  Report,
  StepReport,
  StudyReport,
  ValidationReport,
} from "./report";
import {blameSection} from "./sections/blame";
import {errorsSection, overlapSection, ranksSection, scatterSection, verdict, worstSection} from "./sections/crosscheck";
import {diffHeadline, diffSections} from "./sections/diff";
import {banner, cost, facts, memoryBanner, warnings} from "./sections/facts";
import {headline} from "./sections/headline";
import {kindsSection} from "./sections/kinds";
import {memorySection} from "./sections/memory";
import {meshSection} from "./sections/mesh";
import {arithmeticSection, communicationSection, expertsSection, layersSection} from "./sections/metrics";
import {networkSection} from "./sections/network";
import {studyHeadline, studyPoints} from "./sections/study";
import {studyCurves, studyParts} from "./sections/study_curves";
import {partsSection, stagesSection} from "./sections/time";
import {timelineSection} from "./sections/timeline";
import {
  memoryErrors,
  ratiosSection,
  runsSection,
  runScatter,
  sourcesSection,
  strataSection,
  unsimulatedSection,
  validationHeadline,
} from "./sections/validation";
import {whySection} from "./sections/why";
import {h} from "./dom";
import {roughPercent} from "./format";

export function show(report: Report): void {
  switch (report.kind) {
    case "step":
      return showStep(report);
    case "crosscheck":
      return showCrosscheck(report);
    case "study":
      return showStudy(report);
    case "diff":
      return showDiff(report);
    case "validation":
      return showValidation(report);
    case "failure":
      return showFailure(report);
  }
}

function showStep(report: StepReport): void {
  const {result, timeline, critical_path} = report;
  const bubble = roughPercent(result.bubble_fraction);
  const schedule =
    result.stages_s.length > 1 ? `The schedule of the step: the bubble takes ${bubble}` : "The schedule of the step";
  page(report, present(memoryBanner(result), warnings(result.warnings)), [
    {question: "How fast?", short: "Speed", sections: present(headline(result), facts(report.facts), cost(result))},
    {
      question: "Where does the time go?",
      short: "Time",
      sections: present(
        partsSection(result),
        stagesSection(result),
        timelineSection(schedule, [{title: report.title, timeline}], critical_path),
        kindsSection(result),
        communicationSection(result),
        expertsSection(result)
      ),
    },
    {
      question: "Does it fit?",
      short: "Memory",
      sections: present(memorySection(result, report.memory), layersSection(result)),
    },
    {
      question: "What limits it?",
      short: "Limits",
      sections: present(
        whySection(critical_path, timeline.rows, result.step_time_s),
        arithmeticSection(result),
        ...networkSection(report.links),
        meshSection(report.mesh)
      ),
    },
    {question: "What would change it?", short: "Change", sections: [blameSection(report.blame, result)]},
  ]);
}

function showCrosscheck(report: CrosscheckReport): void {
  const {
    result,
    result: {crosscheck},
  } = report;
  page(report, present(memoryBanner(result), warnings(result.warnings)), [
    {
      question: "Does the simulation tell the truth?",
      short: "Verdict",
      sections: present(verdict(crosscheck), facts(report.facts), cost(result)),
    },
    {
      question: "Where does it differ?",
      short: "Tasks",
      sections: present(errorsSection(crosscheck, report.tasks), scatterSection(report.tasks), worstSection(crosscheck)),
    },
    {
      question: "Do they run in the same order?",
      short: "Timelines",
      sections: present(
        timelineSection("Simulated above, measured below, at the same scale", [
          {title: "simulated", timeline: report.simulated},
          {title: "measured", timeline: report.measured},
        ]),
        overlapSection(crosscheck),
        ranksSection(crosscheck)
      ),
    },
    {
      question: "Where does the measured time go?",
      short: "Time",
      sections: present(partsSection(result), stagesSection(result), kindsSection(result)),
    },
    {question: "Does it fit?", short: "Memory", sections: [memorySection(result, [])]},
  ]);
}

function showStudy(report: StudyReport): void {
  page(
    report,
    [],
    [
      {question: "What came out?", short: "Best", sections: [studyHeadline(report)]},
      {question: "How does it scale?", short: "Scaling", sections: studyCurves(report)},
      {question: "Where does the time go?", short: "Time", sections: studyParts(report)},
      {question: "All points", short: "Points", sections: [studyPoints(report)]},
    ]
  );
}

function showDiff(report: DiffReport): void {
  page(report, [], [{question: "Which is faster?", short: "Speed", sections: [diffHeadline(report)]}, ...diffSections(report)]);
}

function showValidation(report: ValidationReport): void {
  page(
    report,
    [],
    [
      {question: "How far off?", short: "Error", sections: present(validationHeadline(report), strataSection(report.strata))},
      {
        question: "Which runs?",
        short: "Runs",
        sections: present(sourcesSection(report), runScatter(report.rows), runsSection(report.rows)),
      },
      {question: "Do comparisons hold?", short: "Ratios", sections: [ratiosSection(report.ratios)]},
      {question: "Does it fit?", short: "Memory", sections: [memoryErrors(report.memory)]},
      ...(report.unsimulated.length > 0
        ? [{question: "What could not be simulated?", short: "Left out", sections: [unsimulatedSection(report)]}]
        : []),
    ]
  );
}

function showFailure(report: FailureReport): void {
  const told = facts(report.facts);
  const chapters: Chapter[] = told ? [{question: "What was to be run?", short: "Run", sections: [told]}] : [];
  const meaning = {1: "the run failed", 2: "the input is wrong", 3: "it does not fit in memory"}[report.exit_code];
  page(
    report,
    [
      banner(report.sentence),
      h(
        "p",
        {class: "note", "data-figure": "exit_code", "data-value": report.exit_code},
        `Exit code ${report.exit_code}${meaning ? `: ${meaning}` : ""}`
      ),
    ],
    chapters
  );
}

function present(...elements: (HTMLElement | null)[]): HTMLElement[] {
  return elements.filter(element => element !== null);
}
