// What tests read from a timeline, and how they steer it: `await container.timeline`.

import type {Chart} from "./chart";
import {describe, type Description} from "./describe";
import type {FrameTimes} from "./frames";
import type {Hit} from "./hit";
import type {Line} from "./layout";
import {xOf} from "./view";

export interface TimelineHooks {
  /** What is in view. */
  visible(): {start_s: number; end_s: number};
  show(start_s: number, end_s: number): void;
  /** Tasks decoded, by timeline and row. */
  tasks(): number[][];
  /** Lines from top to bottom. */
  lines(): readonly Line[];
  /** What is under a point, in CSS pixels from the left top corner of `canvas.timeline-rows`. */
  at(x: number, y: number): (Hit & {description: Description}) | null;
  x(time_s: number): number;
  frames: {start(): void; stop(): FrameTimes};
}

export function hooksOf(chart: Chart): TimelineHooks {
  return {
    visible: () => ({start_s: chart.view.start_s, end_s: chart.view.end_s}),
    show: (start_s, end_s) => chart.show(start_s, end_s),
    tasks: () => chart.models.map(({rows}) => rows.map(({streams}) => streams.reduce((sum, {first, last}) => sum + last - first, 0))),
    lines: () => chart.lines(),
    at: (x, y) => {
      const hit = chart.at(x, y);
      return hit && {...hit, description: describe(chart.models, hit, chart.twinsOf(hit))};
    },
    x: time_s => xOf(chart.view, time_s),
    frames: chart.frames,
  };
}
