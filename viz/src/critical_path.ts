// The critical path, back from its columns.
import {column} from "./columns";
import type {PackedPath} from "./report";

/** Tasks of one kind, one after the other on one row. */
export interface PathSegment {
  row: number; // of the timeline; -1: a rank that is not drawn
  start_s: number;
  end_s: number;
  kind: string;
  task: string; // the first one's name
  tasks: number;
}

const unpacked = new WeakMap<PackedPath, Promise<PathSegment[]>>();

/** In time's order. A path is unpacked once, however many ask. */
export function segmentsOf(path: PackedPath): Promise<PathSegment[]> {
  const known = unpacked.get(path) ?? unpack(path);
  unpacked.set(path, known);
  return known;
}

async function unpack({columns, segments, names, tick_s}: PackedPath): Promise<PathSegment[]> {
  const [row, duration, kind, task, tasks] = await Promise.all([
    column(columns, "row", segments, Int16Array),
    column(columns, "duration", segments, Uint32Array),
    column(columns, "kind", segments, Uint32Array),
    column(columns, "task", segments, Uint32Array),
    column(columns, "tasks", segments, Uint32Array),
  ]);
  let ticks = 0;
  return Array.from(row, (of_row, at) => {
    const start_s = ticks * tick_s;
    ticks += duration[at];
    return {row: of_row, start_s, end_s: ticks * tick_s, kind: names[kind[at]], task: names[task[at]], tasks: tasks[at]};
  });
}
