// How a study scales, and where the time goes at each of its points.
import {curveColours, curves, type Measure} from "../charts/curves";
import {figure, fullWidth, legend} from "../charts/frame";
import {stackedColumns} from "../charts/stacked_columns";
import {h} from "../dom";
import {counted, number, percent, roughPercent, seconds, secondsTicks} from "../format";
import {nothing, section} from "../page";
import {partsOfStep, partsThatOccur} from "../parts";
import type {StudyReport} from "../report";
import {spoken, studyAxis, type StudyAxis, type Value} from "../study_axis";
import {measured, parametersOf, spokenStatus, type Measured} from "./study";

const measures: readonly Measure[] = [
  {
    id: "mfu",
    title: "MFU",
    of: result => result.mfu,
    format: percent,
    tick: () => value => `${Number((value * 100).toPrecision(3))} %`,
  },
  {id: "step-time", title: "Step time", of: result => result.step_time_s, format: seconds, tick: secondsTicks},
  {
    id: "tokens",
    title: "Tokens/s",
    of: result => result.tokens_per_s_per_gpu * result.gpus,
    format: value => `${number(value)} tokens/s`,
    tick: () => compact,
    proportional: true,
  },
];

export function studyCurves(report: StudyReport): HTMLElement[] {
  const axis = studyAxis(report);
  const known = measured(report.points);
  if (known.length === 0)
    return [section("curves", "No point has a result", nothing("curves", "There is nothing to draw; the table below says why."))];
  const rangeOf = (measure: Measure): [number, number] => {
    const values = known.map(({result}) => measure.of(result));
    return [Math.min(...values), Math.max(...values)];
  };
  const width = Math.floor((fullWidth - 2 * 20) / 3);
  const keys = axis.curveBy
    ? legend(
        axis.curves.map((curve, at) => ({
          label: `${axis.curveBy} ${curve}`,
          colour: curveColours[at % curveColours.length] ?? "forward",
          line: true,
        }))
      )
    : null;
  const rows = axis.panels.map(panel =>
    h(
      "div",
      {},
      panel ? h("h4", {}, panel) : null,
      h(
        "div",
        {class: "trio"},
        ...measures.map(measure =>
          h("div", {}, h("h5", {}, measure.title), curves(axis, panel, measure, {width, range: rangeOf(measure)}))
        )
      )
    )
  );
  return [
    section(
      "curves",
      curvesFinding(axis),
      figure(
        {
          legend: keys,
          caption: statusCaption(axis),
        },
        ...rows
      ),
      unplaced(axis)
    ),
  ];
}

export function studyParts(report: StudyReport): HTMLElement[] {
  const axis = studyAxis(report);
  const known = measured(report.points);
  if (known.length === 0)
    return [section("study-parts", "No point has a result", nothing("study-parts", "There is nothing to draw."))];
  const panels = axis.panels
    .flatMap(panel =>
      axis.curves.map(curve => ({
        label: [axis.curveBy ? `${axis.curveBy} ${curve}` : "", panel].filter(Boolean).join(", "),
        placed: axis.placed.filter(one => one.panel === panel && one.curve === curve),
      }))
    )
    .filter(({placed}) => placed.length > 0);
  const columns = panels.length === 1 ? 1 : panels.length === 2 || panels.length === 4 || axis.values.length > 8 ? 2 : 3;
  const width = Math.floor((fullWidth - (columns - 1) * 20) / columns);
  const entries = partsThatOccur(known.map(({result}) => partsOfStep(result.time_s))).map(({name, colour, hatched}) => ({
    label: name,
    colour,
    hatched,
  }));
  return [
    section(
      "study-parts",
      partsFinding(known),
      figure(
        {
          legend: legend(entries),
          caption:
            "Shares of each point's step. Hatched: communication that no kernel hides." +
            (known.some(({point}) => point.status !== "done") ? " Pale: does not fit in memory." : ""),
        },
        h(
          "div",
          {class: "panels", style: `--columns:${columns}`},
          ...panels.map(({label, placed}) =>
            h("div", {}, label ? h("h5", {}, label) : null, stackedColumns(axis, placed, label, {width}))
          )
        )
      )
    ),
  ];
}

function curvesFinding(axis: StudyAxis): string {
  const known = axis.placed.filter(({point}) => point.status === "done").sort((a, b) => a.x - b.x);
  const [first, last] = [known[0], known.at(-1)];
  if (!first?.point.result || !last?.point.result || first.x === last.x) return `MFU, step time and tokens/s over ${axis.title}`;
  const bestAt = (place: number) => Math.max(...known.filter(({x}) => x === place).map(({point}) => point.result?.mfu ?? 0));
  const [from, to] = [bestAt(first.x), bestAt(last.x)];
  if (axis.ranked) return `MFU goes from ${percent(from)} down to ${percent(to)} over ${counted(known.length, "point")} that fit`;
  const at = (place: number) => spoken(axis.values[place] as Value);
  const way = `as ${axis.title === "GPUs" ? "GPUs go" : `${axis.title} goes`} from ${at(first.x)} to ${at(last.x)}`;
  if (Math.abs(to / from - 1) < 0.005) return `MFU stays at ${percent(to)} ${way}`;
  return `MFU ${to < from ? "falls" : "rises"} from ${percent(from)} to ${percent(to)} ${way}`;
}

function partsFinding(known: readonly Measured[]): string {
  const share = (name: string) =>
    known.map(({result}) => (partsOfStep(result.time_s).find(part => part.name === name)?.value ?? 0) / result.step_time_s);
  const names = partsOfStep((known[0] as Measured).result.time_s)
    .map(({name}) => name)
    .filter(name => name !== "compute");
  const ranges = names
    .map(name => ({name, low: Math.min(...share(name)), high: Math.max(...share(name))}))
    .sort((a, b) => b.high - b.low - (a.high - a.low));
  const most = ranges[0];
  if (!most || roughPercent(most.low) === roughPercent(most.high)) return "The parts keep their shares at every point";
  const name = most.name.startsWith("exposed") ? most.name : `the ${most.name}`;
  return `What varies most is ${name}: from ${roughPercent(most.low)} to ${roughPercent(most.high)} of the step`;
}

function statusCaption({placed}: StudyAxis): string {
  const rings = placed.some(({point}) => point.status !== "done" && point.result);
  const crosses = placed.some(({point}) => !point.result);
  return [
    rings ? "Rings do not fit in memory." : "",
    crosses ? "Crosses at the foot have no result; point at one to read why." : "",
  ]
    .filter(Boolean)
    .join(" ");
}

function unplaced({unplaced: points}: StudyAxis): HTMLElement | null {
  if (points.length === 0) return null;
  return h(
    "ul",
    {class: "warnings"},
    ...points.map(point =>
      h(
        "li",
        {},
        h("span", {"aria-hidden": "true"}, "✕"),
        `${parametersOf(point)}: ${spokenStatus(point.status)}. ${point.sentence}`
      )
    )
  );
}

/** 1.2M, 350k. */
function compact(value: number): string {
  const [factor, unit] = value >= 1e9 ? [1e9, "G"] : value >= 1e6 ? [1e6, "M"] : value >= 1e3 ? [1e3, "k"] : [1, ""];
  return `${Number((value / factor).toPrecision(3))}${unit}`;
}
