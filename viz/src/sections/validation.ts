// Predictions beside runs that were measured: how far off by group of runs, by source, run by run.
import {figure} from "../charts/frame";
import {ratioBars} from "../charts/ratio_bars";
import {scatter, type Dots} from "../charts/scatter";
import {groupButtons} from "../charts/scatter_legend";
import {h} from "../dom";
import {bytes, change, counted, integer, number, percent, roughPercent, seconds} from "../format";
import {nothing, section} from "../page";
import type {ColourName} from "../palette";
import type {Stratum, ValidatedRun, ValidationReport} from "../report";
import {numbers, table, type Column} from "../table";

interface Scored extends ValidatedRun {
  measured_step_time_s: number;
  predicted_step_time_s: number;
  error: number;
}

export function validationHeadline({rows, strata, unsimulated}: ValidationReport): HTMLElement {
  const total = strata.find(({set, by}) => set === "all" && by === "all") ?? null;
  const tile = (name: string, label: string, value: string, exact: number, below: string) =>
    h(
      "div",
      {class: "tile", "data-figure": name, "data-value": exact},
      h("span", {class: "label"}, label),
      h("span", {class: "value"}, value),
      h("span", {class: "below"}, below)
    );
  return h(
    "div",
    {class: "headline"},
    h(
      "div",
      {class: "step-time"},
      h(
        "p",
        {class: "figure", "data-figure": "median", "data-value": total?.median_abs_error},
        total ? percent(total.median_abs_error) : "–",
        h("small", {class: "under"}, total ? "median error of the step time" : "nothing was measured and simulated")
      ),
      h("p", {class: "range-words"}, total ? `${counted(total.sources, "source")}, each weighing the same` : "")
    ),
    h(
      "div",
      {class: "figures"},
      tile(
        "simulated",
        "runs simulated",
        integer(rows.length - unsimulated.length),
        rows.length - unsimulated.length,
        `of ${integer(rows.length)}`
      ),
      ...(total
        ? [
            tile("p90", "90th percentile", percent(total.p90_abs_error), total.p90_abs_error, `mean ${percent(total.mean_abs_error)}`),
            tile("bias", "bias", change(total.bias, percent), total.bias, total.bias < 0 ? "predicted too fast" : "predicted too slow"),
            tile("coverage", "in their interval", percent(total.coverage), total.coverage, "of the measured times"),
          ]
        : [])
    )
  );
}

export function strataSection(strata: readonly Stratum[]): HTMLElement | null {
  const groups = strata.filter(({by}) => by !== "source");
  if (groups.length === 0) return null;
  const part = (name: string, value: (row: Stratum) => number): Column<Stratum> => ({
    name,
    value,
    show: row => percent(value(row)),
  });
  const sets = new Set(groups.map(({set}) => set)).size;
  return section(
    "strata",
    "Errors by group of runs",
    table<Stratum>(
      [
        ...(sets > 1 ? [{name: "set", text: true, value: (row: Stratum) => row.set}] : []),
        {name: "by", text: true, value: row => row.by},
        {name: "group", text: true, value: row => row.name},
        {name: "runs", value: row => row.rows, show: row => integer(row.rows)},
        {name: "sources", value: row => row.sources},
        part("median", row => row.median_abs_error),
        part("mean", row => row.mean_abs_error),
        part("90th", row => row.p90_abs_error),
        {name: "bias", value: row => row.bias, show: row => change(row.bias, percent)},
        part("in interval", row => row.coverage),
      ],
      groups,
      {id: "strata", caption: "Errors by group of runs", attributes: row => ({"data-set": row.set, "data-name": row.name})}
    )
  );
}

export function sourcesSection({rows, strata}: ValidationReport): HTMLElement | null {
  const sources = strata.filter(({set, by}) => set === "all" && by === "source");
  if (sources.length === 0) return null;
  const sorted = [...sources].sort((a, b) => Math.abs(b.bias) - Math.abs(a.bias));
  const worst = sorted[0] as Stratum;
  return section(
    "sources",
    `Farthest off in the median: ${worst.name}, ${change(worst.bias, roughPercent)}`,
    figure(
      {caption: "Predicted over measured step time, the median of each source. Whiskers: from its least to its greatest."},
      ratioBars(
        "source-errors",
        "Predicted over measured step time by source",
        sorted.map(source => {
          const ratios = scored(rows).flatMap(row => (row.source === source.name ? [1 + row.error] : []));
          return {
            name: source.name,
            ratio: 1 + source.bias,
            whisker: ratios.length > 1 ? ([Math.min(...ratios), Math.max(...ratios)] as const) : null,
            text: change(source.bias, percent),
            tip: {
              title: source.name,
              lines: [
                ["runs", integer(source.rows)],
                ["median error", percent(source.median_abs_error)],
                ["in their interval", percent(source.coverage)],
              ],
            },
          };
        }),
        ["predicted too fast", "predicted too slow"]
      )
    )
  );
}

export function runScatter(rows: readonly ValidatedRun[]): HTMLElement {
  const runs = scored(rows);
  if (runs.length === 0) return section("runs", "No runs", nothing("run-scatter", "No run was both measured and simulated."));
  const gpus = [...new Set(runs.map(({gpu}) => gpu))];
  const colours: readonly ColourName[] = ["forward", "backward-input", "backward-weight", "tp", "dp", "recompute"];
  const groups: Dots[] = [...new Set(runs.map(({source}) => source))].map(source => {
    const own = runs.filter(run => run.source === source);
    return {
      name: source,
      colour: colours[gpus.indexOf(own[0]?.gpu ?? "") % colours.length] ?? "none",
      points: own.map(run => [run.measured_step_time_s, run.predicted_step_time_s] as const),
    };
  });
  const svg = scatter("run-scatter", "Predicted over measured step time of each run", groups, ["measured", "predicted"], "runs");
  const within = runs.filter(({error}) => Math.abs(error) <= 0.1).length;
  return section(
    "runs",
    `${roughPercent(within / runs.length)} of the runs are within 10 % of what was measured`,
    figure(
      {caption: `A dot for each of ${integer(runs.length)} runs, coloured by GPU: ${gpus.join(", ")}.`},
      h("div", {class: "beside"}, svg, groupButtons(groups, svg, ["Sources", "Choose a source to see it alone"]))
    )
  );
}

export function runsSection(rows: readonly ValidatedRun[]): HTMLElement {
  const time = (name: string, value: (row: ValidatedRun) => number | null): Column<ValidatedRun> => ({
    name,
    value,
    show: row => shown(value(row), seconds),
  });
  const sorted = [...rows].sort((a, b) => Math.abs(b.error ?? 0) - Math.abs(a.error ?? 0));
  return section(
    "all-runs",
    "All runs, those that are off most first",
    table<ValidatedRun>(
      [
        {name: "run", text: true, value: row => row.id},
        {name: "source", text: true, value: row => row.source},
        {name: "GPU", text: true, value: row => row.gpu},
        time("measured", row => row.measured_step_time_s),
        time("predicted", row => row.predicted_step_time_s),
        time("low", row => row.low_s),
        time("high", row => row.high_s),
        {name: "error", value: row => row.error, show: row => shown(row.error, error => change(error, percent))},
        {name: "note", text: true, value: row => row.note || null, show: row => h("span", {class: "sentence"}, row.note)},
      ],
      sorted,
      {id: "runs", caption: "All runs", limit: 30, attributes: row => ({"data-run": row.id})}
    )
  );
}

export function ratiosSection({axes, pairs}: ValidationReport["ratios"]): HTMLElement {
  if (axes.length === 0)
    return section("ratios", "No comparisons", nothing("ratios", "No two runs of one source differ in one thing only."));
  type Axis = (typeof axes)[number];
  type Pair = (typeof pairs)[number];
  const best = [...axes].sort((a, b) => b.pairs - a.pairs)[0] as Axis;
  return section(
    "ratios",
    `Of two runs that differ in ${best.axis}, how much slower one is comes out within ${percent(best.median_abs_error)} in the median`,
    table<Axis>(
      [
        {name: "runs that differ in", text: true, value: row => row.axis},
        {name: "pairs", value: row => row.pairs},
        {name: "sources", value: row => row.sources},
        {name: "median", value: row => row.median_abs_error, show: row => percent(row.median_abs_error)},
        {name: "90th", value: row => row.p90_abs_error, show: row => percent(row.p90_abs_error)},
      ],
      axes,
      {id: "ratio-axes", caption: "Errors of ratios by what differs", attributes: row => ({"data-axis": row.axis})}
    ),
    numbers(
      table<Pair>(
        [
          {name: "differ in", text: true, value: row => row.axis},
          {name: "from", text: true, value: row => row.from},
          {name: "to", text: true, value: row => row.to},
          {name: "measured ratio", value: row => row.measured, show: row => number(row.measured)},
          {name: "predicted ratio", value: row => row.predicted, show: row => number(row.predicted)},
          {name: "error", value: row => row.error, show: row => change(row.error, percent)},
        ],
        pairs,
        {id: "ratio-pairs", caption: "Ratios of step times", limit: 30}
      ),
      "Pairs"
    )
  );
}

export function memoryErrors({rows, fits, median_abs_error}: ValidationReport["memory"]): HTMLElement {
  type Row = (typeof rows)[number];
  const words = [
    `${counted(fits.ran_and_fits, "run")} fit, as they did; ${integer(fits.ran_but_exceeds)} do not, though they ran.`,
    ...(fits.oom_and_exceeds + fits.oom_but_fits > 0
      ? [`${counted(fits.oom_and_exceeds, "run")} do not fit, as they did not; ${integer(fits.oom_but_fits)} do, though they ran out.`]
      : []),
  ];
  const title =
    rows.length > 0 ? `Peak memory is off by ${percent(median_abs_error)} in the median` : "No run says how much memory it took";
  return section(
    "memory-errors",
    title,
    ...words.map(sentence => h("p", {class: "note"}, sentence)),
    rows.length > 0 &&
      table<Row>(
        [
          {name: "run", text: true, value: row => row.id},
          {name: "measured", value: row => row.measured_bytes, show: row => bytes(row.measured_bytes, 3)},
          {name: "predicted", value: row => row.predicted_bytes, show: row => bytes(row.predicted_bytes, 3)},
          {name: "error", value: row => row.error, show: row => change(row.error, percent)},
        ],
        rows,
        {id: "memory-errors", caption: "Peak memory, measured and predicted", attributes: row => ({"data-run": row.id})}
      )
  );
}

export function unsimulatedSection({rows, unsimulated}: ValidationReport): HTMLElement {
  return section(
    "unsimulated",
    `${counted(unsimulated.length, "run")} of ${integer(rows.length)} could not be simulated`,
    table<ValidationReport["unsimulated"][number]>(
      [
        {name: "run", text: true, value: row => row.id},
        {name: "why", text: true, value: row => row.reason, show: row => h("span", {class: "sentence"}, row.reason)},
      ],
      unsimulated,
      {id: "unsimulated", caption: "Runs that could not be simulated", attributes: row => ({"data-run": row.id})}
    )
  );
}

function scored(rows: readonly ValidatedRun[]): Scored[] {
  return rows.filter((row): row is Scored => row.error !== null);
}

function shown(value: number | null, format: (value: number) => string): string {
  return value === null ? "–" : format(value);
}
