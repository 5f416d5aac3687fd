// What lies under a point, or at a time of a line: the pass, task or piece of communication that is drawn there.

import {bottomOf, communicationTop, type Layout, type Line, lineAt} from "./layout";
import type {Model} from "./model";
import {at} from "./search";
import {pixelsPerSecond, timeOf, type View} from "./view";

export interface Hit {
  kind: "pass" | "task";
  line: number; // of the layout
  timeline: number;
  row: number;
  index: number; // the row's pass, or the task among all tasks
  start_s: number;
  end_s: number;
  top: number; // of its lane, CSS pixels
  height: number;
}

const reach_px = 3;
const kernelsFrom_px = 8; // mean width from which kernels are drawn one by one

/** Whether a line shows kernels one by one rather than passes. */
export function showsKernels(model: Model, line: Line, view: View): boolean {
  return !line.expanded && model.meanKernel_s * pixelsPerSecond(view) >= kernelsFrom_px;
}

export function hitAt(models: readonly Model[], layout: Layout, view: View, x: number, y: number): Hit | null {
  const line = lineAt(layout, y);
  if (line < 0) return null;
  const {communication, top, height} = layout.lines[line];
  const inCommunication = communication > 0 && y >= top + height;
  return hitOn(models, layout, view, line, timeOf(view, x), inCommunication, reach_px / pixelsPerSecond(view));
}

/** What the lane of a line has at `time_s`, or within `reach_s` of it. */
export function hitOn(
  models: readonly Model[], layout: Layout, view: View, index: number, time_s: number, inCommunication: boolean, reach_s: number,
): Hit | null {
  const line = layout.lines[index];
  const model = models[line.timeline];
  const row = model.rows[line.row];
  const {start_s, end_s} = model.tasks;
  const place = {line: index, timeline: line.timeline, row: line.row, top: line.top, height: line.height};
  const task = (task: number): Hit | null =>
    task < 0 ? null : {kind: "task", ...place, index: task, start_s: start_s[task], end_s: end_s[task]};

  if (line.stream >= 0) {
    const {first, last} = row.streams[line.stream];
    return task(at(start_s, end_s, first, last, time_s, reach_s));
  }
  if (inCommunication) {
    const pieces = row.communication;
    const piece = at(pieces.start_s, pieces.end_s, 0, pieces.task.length, time_s, reach_s);
    place.top = communicationTop(line);
    place.height = bottomOf(line) - place.top;
    return piece < 0 ? null : task(pieces.task[piece]);
  }
  if (row.kernels && showsKernels(model, line, view)) {
    return task(at(start_s, end_s, row.kernels.first, row.kernels.last, time_s, reach_s));
  }
  const {blocks} = row;
  const block = at(blocks.start_s, blocks.end_s, 0, blocks.start_s.length, time_s, reach_s);
  if (block < 0) return null;
  return {kind: "pass", ...place, index: block, start_s: blocks.start_s[block], end_s: blocks.end_s[block]};
}

/** The neighbour of what was hit on the same lane, one before (-1) or after (1) it; null at the ends. */
export function neighbour(models: readonly Model[], layout: Layout, hit: Hit, direction: -1 | 1): Hit | null {
  const line = layout.lines[hit.line];
  const {tasks, rows} = models[line.timeline];
  const next = hit.index + direction;
  const inside = hit.kind === "pass" ? inRange(next, 0, rows[line.row].blocks.start_s.length) : sameStream(rows[line.row].streams, hit.index, next);
  if (!inside) return null;
  const {start_s, end_s} = hit.kind === "pass" ? rows[line.row].blocks : tasks;
  return {...hit, index: next, start_s: start_s[next], end_s: end_s[next]};
}

const inRange = (index: number, first: number, last: number) => index >= first && index < last;

function sameStream(streams: {first: number; last: number}[], task: number, next: number): boolean {
  return streams.some(({first, last}) => inRange(task, first, last) && inRange(next, first, last));
}
