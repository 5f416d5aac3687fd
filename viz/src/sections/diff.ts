// Two runs: what changed, by part, axis and kind of task. Negative: b needs less.
import {swatch} from "../charts/frame";
import {isCommunication} from "../charts/path_chart";
import {rankedBars, type RankedBar} from "../charts/ranked_bars";
import {delta, onlyIn, shortChange} from "../differences";
import {h, type Child} from "../dom";
import {change, percent, roughPercent, seconds} from "../format";
import {nothing, section, type Chapter} from "../page";
import {colourOfKind, type ColourName} from "../palette";
import {hyphened, styleOfPart} from "../parts";
import type {Difference, DiffReport} from "../report";
import {numbers, table} from "../table";
import {diffMemory, diffStages} from "./diff_stages";

export function diffHeadline({a, b}: DiffReport): HTMLElement {
  const gained = b.step_time_s - a.step_time_s;
  const relative = gained / a.step_time_s;
  const words = Math.abs(relative) < 5e-5 ? "as fast as" : relative < 0 ? "faster than" : "slower than";
  const bar = (run: DiffReport["a"], name: "a" | "b", colour: ColourName): RankedBar => ({
    name: `${name}: ${run.name}`,
    value: run.step_time_s,
    text: seconds(run.step_time_s),
    colour,
    data: {"data-run": name},
  });
  return section(
    "speed",
    Math.abs(relative) < 5e-5 ? "Both take the same time" : `b is ${roughPercent(Math.abs(relative))} ${words} a`,
    h(
      "div",
      {class: "headline"},
      h(
        "div",
        {class: "step-time"},
        h(
          "p",
          {class: "figure", "data-figure": "change", "data-value": gained},
          change(relative, percent),
          h("small", {}, `${change(gained, value => seconds(value))} per step`)
        )
      )
    ),
    rankedBars("step-times", "Step times", [bar(a, "a", "compute"), bar(b, "b", relative > 0 ? "lost" : "gained")])
  );
}

export function diffSections(report: DiffReport): Chapter[] {
  return [
    {
      question: "What changed?",
      short: "Parts",
      sections: [
        differences(
          "diff-parts",
          "part",
          report.parts,
          part => ({...styleOfPart(part)}),
          report.a.step_time_s,
          "Parts of the step time, mean over ranks; the changes add up to the whole."
        ),
        ...(report.axes.length > 0
          ? [
              differences(
                "diff-axes",
                "axis",
                report.axes,
                axis => styleOfPart(axis.startsWith("exposed") ? axis : `exposed ${axis}`),
                report.a.step_time_s,
                "Communication that no kernel hides, by axis."
              ),
            ]
          : []),
      ],
    },
    {
      question: "Which tasks?",
      short: "Tasks",
      sections: [
        differences(
          "diff-kinds",
          "kind",
          report.kinds,
          kind => ({colour: colourOfKind(kind), hatched: isCommunication(kind)}),
          report.a.step_time_s,
          "Durations added up per rank, overlapped or not."
        ),
      ],
    },
    {question: "Which stages?", short: "Stages", sections: [diffStages(report)]},
    {question: "What of memory?", short: "Memory", sections: [diffMemory(report)]},
  ];
}

function differences(
  id: string,
  what: string,
  rows: readonly Difference[],
  style: (name: string) => {colour: ColourName; hatched: boolean},
  whole_s: number,
  caption: string
): HTMLElement {
  const ranked = rows
    .filter(row => Math.abs(delta(row)) > 1e-9 * whole_s || (row.a_s === null) !== (row.b_s === null))
    .sort((x, y) => Math.abs(delta(y)) - Math.abs(delta(x)));
  const content: Child[] =
    ranked.length === 0
      ? [nothing(id, `No ${what} changed.`)]
      : [
          rankedBars(
            id,
            caption,
            ranked.map(row => ({
              name: hyphened(row.name),
              value: delta(row),
              text: change(delta(row), value => seconds(value)),
              aside: onlyIn(row.a_s, row.b_s) ?? change(delta(row) / (row.a_s || NaN), percent),
              ...style(row.name),
              data: {"data-name": row.name, "data-a": row.a_s, "data-b": row.b_s},
              tip: {
                title: row.name,
                lines: [
                  ["a", row.a_s === null ? "not there" : seconds(row.a_s)],
                  ["b", row.b_s === null ? "not there" : seconds(row.b_s)],
                  ["change", change(delta(row), value => seconds(value))],
                  ["of a's step", change(delta(row) / whole_s, percent)],
                ],
              },
            })),
            {limit: 15}
          ),
          h("p", {class: "note"}, `${caption} To the left: b needs less.`),
        ];
  return section(
    id,
    differenceFinding(ranked, what, whole_s),
    ...content,
    numbers(
      table<Difference>(
        [
          {
            name: what,
            text: true,
            value: row => row.name,
            show: row => h("span", {class: "with-swatch"}, swatch(style(row.name)), hyphened(row.name)),
          },
          {name: "a", value: row => row.a_s, show: row => (row.a_s === null ? "–" : seconds(row.a_s))},
          {name: "b", value: row => row.b_s, show: row => (row.b_s === null ? "–" : seconds(row.b_s))},
          {name: "change", value: delta, show: row => change(delta(row), value => seconds(value))},
          {
            name: "relative",
            value: row => (row.a_s ? delta(row) / row.a_s : null),
            show: row => (row.a_s ? change(delta(row) / row.a_s, percent) : "–"),
          },
        ],
        rows,
        {id, caption: `Changes by ${what}`, attributes: row => ({"data-name": row.name})}
      )
    )
  );
}

function differenceFinding(ranked: readonly Difference[], what: string, whole_s: number): string {
  const first = ranked[0];
  if (!first) return `No ${what} changed`;
  const share = change(delta(first) / whole_s, roughPercent);
  return `Most changed: ${hyphened(first.name)}, by ${shortChange(delta(first))} or ${share} of a's step`;
}
