// Which lines there are from top to bottom: a line for every row, and for one that is expanded, a line for each of its streams.

import type {Model} from "./model";

/** Lengths in CSS pixels. */
export interface Line {
  timeline: number;
  row: number;
  stream: number; // -1: the row's own line, with its communication in a thin lane below
  top: number;
  height: number; // of the lane of kernels, or of the stream
  communication: number; // height of the thin lane; 0: none
  expanded: boolean; // its streams follow
}

export interface Layout {
  lines: Line[];
  rowLines: Line[]; // of the first timeline's rows
  height: number;
}

interface Sizes {
  lane: number;
  communication: number;
  gap: number;
}

const streamHeight = 18;
const streamGap = 2;
const laneGap = 1;
const rowsOfOneStageGap = 2;

/** Fewer rows are drawn higher. */
function sizesFor(rows: number): Sizes {
  if (rows <= 4) return {lane: 34, communication: 9, gap: 8};
  if (rows <= 8) return {lane: 26, communication: 7, gap: 7};
  if (rows <= 20) return {lane: 18, communication: 6, gap: 6};
  if (rows <= 40) return {lane: 13, communication: 4, gap: 4};
  return {lane: 9, communication: 3, gap: 3};
}

/** Rows of several timelines stand below one another, first rows first. `expanded` holds `keyOf` of rows. */
export function layoutOf(models: readonly Model[], expanded: ReadonlySet<string>): Layout {
  const rows = Math.max(0, ...models.map(model => model.rows.length));
  const sizes = sizesFor(rows * models.length);
  const lines: Line[] = [];
  const rowLines: Line[] = [];
  let top = 0;
  for (let row = 0; row < rows; ++row) {
    for (let timeline = 0; timeline < models.length; ++timeline) {
      const model = models[timeline];
      if (row >= model.rows.length) continue;
      const communication = model.hasCommunication ? sizes.communication : 0;
      const own: Line = {
        timeline, row, stream: -1, top, height: sizes.lane, communication, expanded: expanded.has(keyOf(timeline, row)),
      };
      lines.push(own);
      if (timeline === 0) rowLines.push(own);
      top = bottomOf(own) + rowsOfOneStageGap;
      if (!own.expanded) continue;
      for (let stream = 0; stream < model.rows[row].streams.length; ++stream) {
        lines.push({timeline, row, stream, top, height: streamHeight, communication: 0, expanded: false});
        top += streamHeight + streamGap;
      }
    }
    top += sizes.gap - rowsOfOneStageGap;
  }
  return {lines, rowLines, height: Math.max(top, sizes.lane)};
}

export const keyOf = (timeline: number, row: number) => `${timeline}/${row}`;
export const communicationTop = (line: Line) => line.top + line.height + laneGap;
export const bottomOf = (line: Line) => (line.communication > 0 ? communicationTop(line) + line.communication : line.top + line.height);

/** The line at `y`, the gap below it included; -1 above the first and below the last. */
export function lineAt({lines}: Layout, y: number): number {
  for (let index = lines.length - 1; index >= 0; --index) {
    if (y >= lines[index].top) return index === lines.length - 1 && y > bottomOf(lines[index]) ? -1 : index;
  }
  return -1;
}
