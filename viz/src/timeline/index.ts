// The pipeline's schedule: stages by time, from the whole step down to one kernel.

import {segmentsOf} from "../critical_path";
import {h} from "../dom";
import {counted} from "../format";
import type {PackedPath, Timeline} from "../report";
import {Chart} from "./chart";
import {modelOf} from "./model";
import {hooksOf, type TimelineHooks} from "./hooks";
import {pathOf} from "./path";
import {countOf} from "./repeat";
import "./timeline.css";

export interface TimelineContainer extends HTMLElement {
  timeline?: Promise<TimelineHooks | null>; // for tests; null: no task ran
}

/** Rows of several timelines stand below one another, on one axis. The critical path is the first one's. */
export function mountTimeline(
  container: HTMLElement, timelines: {title: string; timeline: Timeline}[], options: {criticalPath?: PackedPath} = {},
): void {
  const tasks = timelines.reduce((sum, {timeline}) => sum + countOf(timeline), 0);
  container.replaceChildren(h("p", {class: "timeline-state"}, `unpacking ${counted(tasks, "task")} …`));
  container.setAttribute("aria-busy", "true");
  const chart = build(container, timelines, options.criticalPath);
  (container as TimelineContainer).timeline = chart.then(built => built && hooksOf(built)).catch((error: unknown) => {
    container.replaceChildren(h("p", {class: "timeline-state", role: "alert"}, error instanceof Error ? error.message : String(error)));
    return null;
  }).finally(() => container.removeAttribute("aria-busy"));
}

async function build(
  container: HTMLElement, timelines: {title: string; timeline: Timeline}[], path: PackedPath | undefined,
): Promise<Chart | null> {
  const models = [];
  for (const {title, timeline} of timelines) models.push(await modelOf(title, timeline));
  if (models.every(model => model.tasks.start_s.length === 0)) {
    container.replaceChildren(h("p", {class: "timeline-state"}, "No task ran."));
    return null;
  }
  const drawable = path && path.segments > 0 ? pathOf(await segmentsOf(path), models[0].rows.length) : null;
  return new Chart(container, models, drawable);
}
