import type {CriticalPath, Timeline} from "../report";

/** Stands in until the pipeline's timeline is there. */
export function mountTimeline(
  container: HTMLElement, timelines: {title: string; timeline: Timeline}[], _options: {criticalPath?: CriticalPath}): void {
  container.textContent = timelines.map(({title, timeline}) => `${title}: ${timeline.rows.length} rows`).join("; ");
}
