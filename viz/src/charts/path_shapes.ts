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

/** By kind, for the segments of one row; `x` never falls. */
export function shapesOf(segments: readonly PathSegment[], x: (t: number) => number): Map<string, Shape[]> {
  const begin = Float64Array.from(segments, ({start_s}) => x(start_s));
  const end = Float64Array.from(segments, ({end_s}) => x(end_s));
  const firstCell = (i: number) => Math.floor(begin[i] / cell);
  const afterCells = (i: number) => Math.ceil(end[i] / cell);
  const inCell = new Uint32Array(segments.length > 0 ? afterCells(segments.length - 1) : 0);
  for (let i = 0; i < segments.length; ++i) for (let at = firstCell(i); at < afterCells(i); ++at) ++inCell[at];

  const shapes = new Map<string, Shape[]>();
  const shares = new Map<number, Map<string, number>>(); // of crowded cells: pixels by kind
  const add = (kind: string, shape: Shape) => {
    const known = shapes.get(kind);
    if (known) known.push(shape);
    else shapes.set(kind, [shape]);
  };
  segments.forEach(({kind}, i) => {
    let open: Shape | null = null; // runs on through cells that are not crowded
    for (let at = firstCell(i); at < afterCells(i); ++at) {
      const from = Math.max(begin[i], at * cell);
      const width = Math.min(end[i], (at + 1) * cell) - from;
      if (inCell[at] > mostInCell) {
        open = null;
        const ofCell = shares.get(at) ?? new Map<string, number>();
        shares.set(at, ofCell.set(kind, (ofCell.get(kind) ?? 0) + width));
      } else if (open) {
        open.width += width;
      } else {
        open = {x: from, width, top: 0, height: 1};
        add(kind, open);
      }
    }
  });
  const places = placesOf(segments);
  for (const [at, ofCell] of shares) {
    let top = 1;
    for (const [kind, width] of [...ofCell].sort(([a], [b]) => (places.get(a) ?? 0) - (places.get(b) ?? 0))) {
      const height = width / cell;
      top -= height;
      add(kind, {x: at * cell, width: cell, top, height});
    }
  }
  return shapes;
}

/** The place of each kind in a column of several, from the foot. */
function placesOf(segments: readonly PathSegment[]): Map<string, number> {
  const height = (kind: string) => order.indexOf(colourOfKind(kind));
  const kinds = [...new Set(segments.map(({kind}) => kind))].sort();
  return new Map(kinds.sort((a, b) => height(a) - height(b)).map((kind, place) => [kind, place]));
}
