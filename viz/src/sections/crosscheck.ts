// Simulation beside measurement: the step, kinds of tasks, single tasks, streams.
import {figure} from "../charts/frame";
import {isCommunication} from "../charts/path_chart";
import {ratioBars} from "../charts/ratio_bars";
import {scatter, type Dots} from "../charts/scatter";
import {groupButtons} from "../charts/scatter_legend";
import {h} from "../dom";
import {bytes, change, integer, percent, roughPercent, seconds} from "../format";
import {nothing, section} from "../page";
import {colourOfKind} from "../palette";
import type {Crosscheck, CrosscheckReport, Overlap} from "../report";
import {numbers, table} from "../table";

type Kind = Crosscheck["kinds"][number];
type Worst = Crosscheck["worst"][number];
type Tasks = CrosscheckReport["tasks"];

export function verdict({step, memory}: Crosscheck): HTMLElement {
  const measured = memory.measured_bytes === null ? "" : `, measured ${bytes(memory.measured_bytes, 3)}`;
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
        {class: "figure", "data-figure": "error", "data-value": step.error},
        step.error === null ? "–" : change(step.error, percent),
        h(
          "small",
          {class: "under"},
          step.error === null
            ? "nothing was measured"
            : step.error < 0
              ? "simulated faster than measured"
              : "simulated slower than measured"
        )
      )
    ),
    h(
      "div",
      {class: "figures"},
      tile("simulated", "simulated", seconds(step.simulated_s), step.simulated_s, "step time"),
      tile("measured", "measured", seconds(step.measured_s), step.measured_s, "step time"),
      tile(
        "memory",
        "memory simulated",
        bytes(memory.simulated_bytes, 3),
        memory.simulated_bytes,
        `planned ${bytes(memory.executed_bytes, 3)}${measured}`
      )
    )
  );
}

export function errorsSection({kinds}: Crosscheck, tasks: Tasks): HTMLElement {
  if (kinds.length === 0) return section("errors", "No tasks", nothing("kind-errors", "There was no task to compare."));
  const sorted = [...kinds].sort((a, b) => b.share - a.share);
  const svg = ratioBars(
    "kind-errors",
    "Simulated over measured time by kind of task",
    sorted.map(kind => ({
      name: kind.kind,
      ratio: kind.error === null ? null : kind.error + 1,
      whisker: spread(kind.kind, tasks),
      text: kind.error === null ? "not measured" : change(kind.error, percent),
      tip: {
        title: kind.kind,
        lines: [
          ["simulated", seconds(kind.simulated_s)],
          ["measured", seconds(kind.measured_s)],
          ["tasks", integer(kind.count)],
          ["of the measured time", percent(kind.share)],
        ],
      },
    })),
    ["simulated too fast", "simulated too slow"]
  );
  return section(
    "errors",
    errorsFinding(sorted),
    figure(
      {
        caption:
          "Simulated over measured time, summed by kind; most time first. " +
          "Whiskers: from the 10th to the 90th hundredth of the single tasks.",
      },
      svg
    ),
    numbers(
      table<Kind>(
        [
          {name: "kind", text: true, value: kind => kind.kind},
          {name: "tasks", value: kind => kind.count, show: kind => integer(kind.count)},
          {name: "simulated", value: kind => kind.simulated_s, show: kind => seconds(kind.simulated_s)},
          {name: "measured", value: kind => kind.measured_s, show: kind => seconds(kind.measured_s)},
          {name: "of the measured time", value: kind => kind.share, show: kind => percent(kind.share)},
          {name: "error", value: kind => kind.error, show: kind => (kind.error === null ? "–" : change(kind.error, percent))},
        ],
        sorted,
        {id: "kind-errors", caption: "Simulated and measured time by kind", attributes: kind => ({"data-kind": kind.kind})}
      )
    )
  );
}

export function scatterSection(tasks: Tasks): HTMLElement {
  const count = tasks.simulated_s.length;
  if (count === 0) return section("tasks", "No tasks", nothing("task-scatter", "There was no task to compare."));
  const groups: Dots[] = tasks.kinds.map((name, kind) => ({
    name,
    colour: colourOfKind(name),
    points: tasks.kind.flatMap((of, at) =>
      of === kind ? [[tasks.measured_s[at] ?? 0, tasks.simulated_s[at] ?? 0] as const] : []
    ),
  }));
  const svg = scatter("task-scatter", "Simulated over measured time of each task", groups, ["measured", "simulated"], "tasks");
  const within = tasks.simulated_s.filter((value, at) => Math.abs(value / (tasks.measured_s[at] ?? 0) - 1) <= 0.2).length;
  return section(
    "tasks",
    `${roughPercent(within / count)} of the tasks are within 20 % of what was measured`,
    figure(
      {caption: `A dot for each of ${integer(count)} tasks; above the line they were simulated too slow.`},
      h("div", {class: "beside"}, svg, groupButtons(groups, svg, ["Kinds of tasks", "Choose a kind to see it alone"], isCommunication))
    )
  );
}

export function worstSection({worst}: Crosscheck): HTMLElement | null {
  if (worst.length === 0) return null;
  const first = worst[0] as Worst;
  return section(
    "worst",
    `The task that differs most: ${first.task} of rank ${first.rank}`,
    table<Worst>(
      [
        {name: "task", text: true, value: task => task.task},
        {name: "rank", value: task => task.rank},
        {name: "number", value: task => task.id},
        {name: "simulated", value: task => task.simulated_s, show: task => seconds(task.simulated_s)},
        {name: "measured", value: task => task.measured_s, show: task => seconds(task.measured_s)},
        {
          name: "difference",
          value: task => task.simulated_s - task.measured_s,
          show: task => change(task.simulated_s - task.measured_s, seconds),
        },
        {name: "error", value: task => task.error, show: task => (task.error === null ? "–" : change(task.error, percent))},
      ],
      worst,
      {id: "worst", caption: "Tasks that differ most", attributes: task => ({"data-task": task.id})}
    )
  );
}

export function overlapSection({overlap}: Crosscheck): HTMLElement | null {
  if (overlap.length === 0) return null;
  const part = ({busy_s, covered_s}: Overlap) => (busy_s > 0 ? covered_s / busy_s : null);
  const shown = (value: number | null) => (value === null ? "–" : percent(value));
  return section(
    "overlap",
    "How much of each stream's communication kernels hide",
    table<Crosscheck["overlap"][number]>(
      [
        {name: "stream", text: true, value: stream => stream.stream},
        {name: "ranks", value: stream => stream.ranks},
        {name: "busy, simulated", value: stream => stream.simulated.busy_s, show: stream => seconds(stream.simulated.busy_s)},
        {name: "busy, measured", value: stream => stream.measured.busy_s, show: stream => seconds(stream.measured.busy_s)},
        {name: "hidden, simulated", value: stream => part(stream.simulated), show: stream => shown(part(stream.simulated))},
        {name: "hidden, measured", value: stream => part(stream.measured), show: stream => shown(part(stream.measured))},
      ],
      overlap,
      {id: "overlap", caption: "Hidden communication by stream", attributes: stream => ({"data-stream": stream.stream})}
    )
  );
}

export function ranksSection({ranks}: Crosscheck): HTMLElement | null {
  if (ranks.length === 0) return null;
  const same = ranks.filter(({same_order}) => same_order).length;
  const title =
    same === ranks.length
      ? "Every rank ran its tasks in the simulated order"
      : `${integer(same)} of ${integer(ranks.length)} ranks ran their tasks in the simulated order`;
  return section(
    "ranks",
    title,
    numbers(
      table<Crosscheck["ranks"][number]>(
        [
          {name: "rank", value: rank => rank.rank},
          {name: "tasks", value: rank => rank.tasks, show: rank => integer(rank.tasks)},
          {name: "same order", text: true, value: rank => (rank.same_order ? "yes" : "no")},
        ],
        ranks,
        {id: "ranks", caption: "Order of tasks by rank", limit: 16}
      ),
      "Ranks"
    )
  );
}

/** The 10th and 90th hundredth of simulated over measured. */
function spread(kind: string, tasks: Tasks): readonly [number, number] | null {
  const of = tasks.kinds.indexOf(kind);
  const ratios = tasks.kind
    .flatMap((one, at) => (one === of ? [(tasks.simulated_s[at] ?? 0) / (tasks.measured_s[at] ?? 0)] : []))
    .filter(ratio => ratio > 0 && Number.isFinite(ratio))
    .sort((a, b) => a - b);
  const at = (part: number) => ratios[Math.round(part * (ratios.length - 1))] ?? 1;
  return ratios.length >= 5 ? [at(0.1), at(0.9)] : null;
}

function errorsFinding(kinds: readonly Kind[]): string {
  const cost = (kind: Kind) => Math.abs(kind.simulated_s - kind.measured_s);
  const worst = [...kinds].sort((a, b) => cost(b) - cost(a))[0];
  if (!worst || worst.error === null) return "Simulated over measured, by kind of task";
  return `Most of the difference is in ${worst.kind}: ${change(worst.error, roughPercent)}`;
}
