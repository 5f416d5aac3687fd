// The pipeline's schedule; what draws it lives in timeline/.
import {h} from "../dom";
import {nothing, section} from "../page";
import type {PackedPath, Timeline} from "../report";
import {mountTimeline} from "../timeline";

export function timelineSection(
  title: string,
  timelines: {title: string; timeline: Timeline}[],
  criticalPath?: PackedPath
): HTMLElement {
  if (timelines.every(({timeline}) => timeline.rows.length === 0)) {
    return section("timeline", "No timeline", nothing("timeline", "No tasks were recorded for this run."));
  }
  const container = h("div", {class: "timeline", "data-chart": "timeline"});
  const element = section("timeline", title, container);
  element.classList.add("wide");
  // A canvas knows its size only when it is in the page.
  queueMicrotask(() =>
    mountTimeline(container, timelines, criticalPath && criticalPath.segments > 0 ? {criticalPath} : {})
  );
  return element;
}
