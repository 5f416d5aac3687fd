// The critical path as the timeline shows it: where it runs on each row, and when it goes from one row to another.

import type {PathSegment} from "../critical_path";

export interface Path {
  rows: Runs[]; // by row of the timeline
  hops: Hops; // in time's order
}

export interface Runs {
  start_s: Float64Array;
  end_s: Float64Array;
}

export interface Hops {
  time_s: Float64Array;
  from: Uint16Array; // rows
  to: Uint16Array;
}

/** Segments that follow one another on a row are one run. Those on rows that are not drawn are left out. */
export function pathOf(segments: readonly PathSegment[], rows: number): Path {
  const starts: number[][] = Array.from({length: rows}, () => []);
  const ends: number[][] = Array.from({length: rows}, () => []);
  const hops: [time_s: number, from: number, to: number][] = [];
  let before = -1;
  for (const {row, start_s, end_s} of segments) {
    if (row >= 0 && row < rows) {
      if (row === before) {
        ends[row][ends[row].length - 1] = end_s;
      } else {
        starts[row].push(start_s);
        ends[row].push(end_s);
        if (before >= 0) hops.push([start_s, before, row]);
      }
    }
    before = row < rows ? row : -1;
  }
  return {
    rows: starts.map((list, row) => ({start_s: Float64Array.from(list), end_s: Float64Array.from(ends[row])})),
    hops: {
      time_s: Float64Array.from(hops, ([time_s]) => time_s),
      from: Uint16Array.from(hops, ([, from]) => from),
      to: Uint16Array.from(hops, ([, , to]) => to),
    },
  };
}
