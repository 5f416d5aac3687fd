// The rectangles that a row of the critical path is drawn by. Thousands of segments may share a pixel; where they do, their heights say
// which share of the time is whose.
import type {PathSegment} from "../critical_path";
import {axes, colourOfKind, phases, type ColourName} from "../palette";

const cell = 2; // pixels in which more than two segments are too many to tell apart
const mostInCell = 2;
const order: readonly ColourName[] = [...phases, "compute", ...axes, "none", "bubble"]; // from the foot

/** Of a row: `top` and `height` are parts of its height. */
export interface Shape {
  x: number;
  width: number;
  top: number;
  height: number;
}

/** By kind, for the segments of one row. */
export function shapesOf(segments: readonly PathSegment[], x: (t: number) => number): Map<string, Shape[]> {
  const count = new Map<number, number>();
  for (const segment of segments) {
    for (const at of cellsOf(segment, x)) count.set(at, (count.get(at) ?? 0) + 1);
  }
  const crowded = (at: number) => (count.get(at) ?? 0) > mostInCell;

  const shapes = new Map<string, Shape[]>();
  const shares = new Map<number, Map<string, number>>(); // of crowded cells: pixels by kind
  const add = (kind: string, shape: Shape) => {
    const known = shapes.get(kind);
    if (known) known.push(shape);
    else shapes.set(kind, [shape]);
  };
  for (const segment of segments) {
    const {kind} = segment;
    let open: Shape | null = null; // runs on through cells that are not crowded
    for (const at of cellsOf(segment, x)) {
      const from = Math.max(x(segment.start_s), at * cell);
      const width = Math.min(x(segment.end_s), (at + 1) * cell) - from;
      if (crowded(at)) {
        open = null;
        const inCell = shares.get(at) ?? new Map<string, number>();
        shares.set(at, inCell.set(kind, (inCell.get(kind) ?? 0) + width));
      } else if (open) {
        open.width += width;
      } else {
        open = {x: from, width, top: 0, height: 1};
        add(kind, open);
      }
    }
  }
  for (const [at, inCell] of shares) {
    let top = 1;
    for (const [kind, width] of [...inCell].sort(([a], [b]) => compared(a, b))) {
      const height = width / cell;
      top -= height;
      add(kind, {x: at * cell, width: cell, top, height});
    }
  }
  return shapes;
}

function* cellsOf({start_s, end_s}: PathSegment, x: (t: number) => number): Generator<number> {
  const last = Math.ceil(x(end_s) / cell) - 1;
  for (let at = Math.floor(x(start_s) / cell); at <= last; ++at) yield at;
}

function compared(a: string, b: string): number {
  return order.indexOf(colourOfKind(a)) - order.indexOf(colourOfKind(b)) || (a < b ? -1 : 1);
}
