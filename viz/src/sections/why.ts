// Why it takes that long: the chain of tasks and waits that the step time is made of.
import {figure, legend, type LegendEntry} from "../charts/frame";
import {isCommunication, pathChart} from "../charts/path_chart";
import {rankedBars} from "../charts/ranked_bars";
import {segmentsOf} from "../critical_path";
import {h} from "../dom";
import {counted, listed, percent, roughPercent, seconds} from "../format";
import {nothing, section} from "../page";
import {axes, colourOfKind, phases} from "../palette";
import type {PackedPath, TimelineRow} from "../report";

export function whySection(path: PackedPath, rows: readonly TimelineRow[], step_s: number): HTMLElement {
  if (path.segments === 0) {
    return section("why", "No critical path", nothing("critical-path", "The critical path was not recorded for this run."));
  }
  const kinds = [...path.kinds].sort((a, b) => b.time_s - a.time_s);
  return section(
    "why",
    `The critical path: ${finding(path, step_s)}`,
    figure(
      {
        legend: legend(entries(path)),
        caption:
          "Each moment of the step belongs to the one task, or wait, that the end of the step depends on there. " +
          "What is not on it can be made faster without any gain. Where kinds alternate faster than can be drawn, heights are shares.",
      },
      chartOf(path, rows, step_s)
    ),
    h("h4", {}, "The path summed by kind"),
    rankedBars(
      "path-kinds",
      "The critical path summed by kind",
      kinds.map(({name, time_s}) => ({
        name,
        value: time_s,
        text: seconds(time_s),
        aside: percent(time_s / step_s),
        colour: colourOfKind(name),
        hatched: isCommunication(name),
        data: {"data-kind": name},
      })),
      {limit: 12}
    )
  );
}

/** Where the chart is in a moment, when its segments are unpacked. */
function chartOf(path: PackedPath, rows: readonly TimelineRow[], step_s: number): HTMLElement {
  const place = h("p", {class: "nothing waiting", "aria-busy": "true"}, `unpacking ${counted(path.segments, "segment")} …`);
  segmentsOf(path).then(
    segments => place.replaceWith(pathChart(segments, rows, step_s)),
    (error: unknown) => {
      place.removeAttribute("aria-busy");
      place.setAttribute("role", "alert");
      place.replaceChildren(error instanceof Error ? error.message : String(error));
    }
  );
  return place;
}

/** Kernels by phase, communication by axis, waits: most first. */
function finding({kinds}: PackedPath, step_s: number): string {
  const sums = new Map<string, number>();
  for (const {name, time_s} of kinds) {
    const colour = colourOfKind(name);
    const group = isCommunication(name)
      ? `${colour === "none" ? "other" : colour} communication`
      : name === "wait"
        ? "waits"
        : "kernels";
    sums.set(group, (sums.get(group) ?? 0) + time_s);
  }
  const told = [...sums]
    .filter(([, time_s]) => time_s >= 0.005 * step_s)
    .sort((a, b) => b[1] - a[1])
    .slice(0, 4);
  return listed(told.map(([group, time_s]) => `${group} ${roughPercent(time_s / step_s)}`));
}

function entries({kinds}: PackedPath): LegendEntry[] {
  const present = new Set(kinds.map(({name}) => colourOfKind(name)));
  return [
    ...phases.filter(phase => present.has(phase)).map(phase => ({label: phase, colour: phase})),
    ...axes.filter(axis => present.has(axis)).map(axis => ({label: `${axis} communication`, colour: axis, hatched: true})),
    ...(present.has("none") ? [{label: "other", colour: "none" as const}] : []),
    ...(present.has("bubble") ? [{label: "wait", colour: "bubble" as const}] : []),
  ];
}
