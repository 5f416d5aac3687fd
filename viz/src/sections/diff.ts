// Two runs: what changed, by part, kind, axis, stage and memory. Negative: b needs less.
import {rankedBars, type RankedBar} from "../charts/ranked_bars";
import {h, type Child} from "../dom";
import {bytes, change, percent, roughPercent, seconds} from "../format";
import {nothing, section, type Chapter} from "../page";
import {colourOfKind, type ColourName} from "../palette";
import {hyphened, styleOfPart} from "../parts";
import type {Difference, DiffReport} from "../report";
import {numbers, table} from "../table";
import {isCommunication} from "../charts/path_chart";
import {swatch} from "../charts/frame";

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
    rankedBars("step-times", "Step times", [bar(a, "a", "compute"), bar(b, "b", "forward")])
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
    {question: "Which stages?", short: "Stages", sections: [stages(report)]},
    {question: "What of memory?", short: "Memory", sections: [memory(report)]},
  ];
}

/** What sums leave behind in the last digits is no change. */
const delta = ({a_s, b_s}: Difference) => {
  const [a, b] = [a_s ?? 0, b_s ?? 0];
  return Math.abs(b - a) <= 1e-9 * Math.max(a, b) ? 0 : b - a;
};

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
              aside: onlyIn(row) ?? change(delta(row) / (row.a_s || NaN), percent),
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

/** A stage a line: its change as a whole, and what of it is which part. */
function stages({stages: all, a}: DiffReport): HTMLElement {
  if (all.length === 0)
    return section("diff-stages", "The stages cannot be compared", nothing("diff-stages", "The runs have no stages in common."));
  const names = [...new Set(all.flatMap(({parts}) => parts.filter(part => delta(part) !== 0).map(({name}) => name)))];
  const most = Math.max(0, ...all.flatMap(({parts}) => parts.map(part => Math.abs(delta(part)))));
  const spread = all
    .map(stage => ({stage: stage.stage, part: [...stage.parts].sort((x, y) => Math.abs(delta(y)) - Math.abs(delta(x)))[0]}))
    .sort((x, y) => Math.abs(y.part ? delta(y.part) : 0) - Math.abs(x.part ? delta(x.part) : 0))[0];
  if (names.length === 0)
    return section("diff-stages", "No stage changed", nothing("diff-stages", "Every part of every stage takes the same time."));
  const title = spread?.part
    ? `The largest change is in stage ${spread.stage}: ${hyphened(spread.part.name)} ${shortChange(delta(spread.part))}`
    : "By stage";
  const find = (stage: DiffReport["stages"][number], name: string) => stage.parts.find(part => part.name === name);
  return section(
    "diff-stages",
    title,
    table<DiffReport["stages"][number]>(
      [
        {name: "stage", value: stage => stage.stage},
        ...names.map(name => ({
          name: hyphened(name),
          value: (stage: DiffReport["stages"][number]) => {
            const part = find(stage, name);
            return part ? delta(part) : null;
          },
          show: (stage: DiffReport["stages"][number]) => {
            const part = find(stage, name);
            return part ? changeCell(delta(part), most) : "–";
          },
        })),
      ],
      all,
      {id: "diff-stages", caption: "Changes by stage and part", attributes: stage => ({"data-stage": stage.stage})}
    ),
    h(
      "p",
      {class: "note"},
      "Changes of each stage's parts from a to b; the colour grows with the change, " +
        `up to ${percent(most / a.step_time_s)} of a's step.`
    )
  );
}

function changeCell(value: number, most: number): HTMLElement {
  const share = most > 0 ? Math.abs(value) / most : 0;
  return h(
    "span",
    {class: "change", style: `--colour:var(--${value < 0 ? "gained" : "lost"});--share:${(share * 45).toFixed(1)}%`},
    value === 0 ? "0" : change(value, one => seconds(one, 3))
  );
}

function memory({memory: all}: DiffReport): HTMLElement {
  const total = (key: "a_bytes" | "b_bytes") => Math.max(0, ...all.map(stage => stage[key]));
  if (all.length === 0)
    return section("diff-memory", "Memory cannot be compared", nothing("diff-memory", "The runs have no stages in common."));
  const gained = total("b_bytes") - total("a_bytes");
  const title =
    gained === 0
      ? `The fullest GPU holds ${bytes(total("a_bytes"))} in both`
      : `The fullest GPU holds ${bytes(Math.abs(gained), 3)} ${gained < 0 ? "less" : "more"}: ` +
        `${bytes(total("b_bytes"))} instead of ${bytes(total("a_bytes"))}`;
  const changed = all.some(({a_bytes, b_bytes}) => a_bytes !== b_bytes);
  return section(
    "diff-memory",
    title,
    changed
      ? rankedBars(
          "diff-memory",
          "Peak memory by stage",
          all.map(({stage, a_bytes, b_bytes}) => ({
            name: `stage ${stage}`,
            value: b_bytes - a_bytes,
            text: change(b_bytes - a_bytes, value => bytes(value, 3)),
            aside: change(b_bytes / a_bytes - 1, percent),
            colour: b_bytes < a_bytes ? ("gained" as const) : ("lost" as const),
            data: {"data-stage": stage, "data-a": a_bytes, "data-b": b_bytes},
          }))
        )
      : nothing("diff-memory", "No stage's peak changed."),
    numbers(
      table<DiffReport["memory"][number]>(
        [
          {name: "stage", value: stage => stage.stage},
          {name: "a", value: stage => stage.a_bytes, show: stage => bytes(stage.a_bytes)},
          {name: "b", value: stage => stage.b_bytes, show: stage => bytes(stage.b_bytes)},
          {
            name: "change",
            value: stage => stage.b_bytes - stage.a_bytes,
            show: stage => change(stage.b_bytes - stage.a_bytes, value => bytes(value)),
          },
        ],
        all,
        {id: "diff-memory", caption: "Peak memory by stage", attributes: stage => ({"data-stage": stage.stage})}
      )
    )
  );
}

function shortChange(time_s: number): string {
  return change(time_s, value => seconds(value, 3));
}

function onlyIn({a_s, b_s}: Difference): string | undefined {
  return a_s === null ? "new" : b_s === null ? "gone" : undefined;
}

function differenceFinding(ranked: readonly Difference[], what: string, whole_s: number): string {
  const first = ranked[0];
  if (!first) return `No ${what} changed`;
  const share = change(delta(first) / whole_s, roughPercent);
  return `Most changed: ${hyphened(first.name)}, by ${shortChange(delta(first))} or ${share} of a's step`;
}
