// The columns of a timeline, back from base64 and zlib, as typed arrays by task.

import {column, columnOfAnyLength} from "../columns";
import type {TaskType, Timeline} from "../report";

/** Tasks [first, last) of one stream of one row, in time's order and without overlap. */
export interface Stream {
  name: string;
  first: number;
  last: number;
}

export interface Row {
  stage: number;
  rank: number;
  name: string;
  streams: Stream[]; // compute first, where there is one
}

export interface Tasks {
  step_s: number;
  rows: Row[];
  types: TaskType[];
  start_s: Float64Array;
  end_s: Float64Array;
  busyUpTo_s: Float64Array; // durations of all tasks before; one more than tasks
  type: Uint32Array; // into types
  microBatch: Int16Array; // -1: none, as the next two
  layer: Int16Array;
  chunk: Int16Array;
}

/** Throws an Error that says which column is broken. */
export async function decode(timeline: Timeline): Promise<Tasks> {
  const count = timeline.rows.reduce((sum, row) => row.streams.reduce((tasks, stream) => tasks + stream.tasks, sum), 0);
  const {columns} = timeline;
  const [gap, duration, type, labels] = await Promise.all([
    column(columns, "gap", count, Uint32Array),
    column(columns, "duration", count, Uint32Array),
    column(columns, "type", count, Uint32Array),
    labelsOf(columns, count),
  ]);
  return {step_s: timeline.step_s, types: timeline.types, ...place(timeline, gap, duration), type, ...labels};
}

async function labelsOf(columns: Timeline["columns"], count: number) {
  const run = await columnOfAnyLength(columns, "run", Uint32Array);
  const [ofMicroBatch, ofLayer, ofChunk] = await Promise.all([
    column(columns, "micro_batch", run.length, Int16Array),
    column(columns, "layer", run.length, Int16Array),
    column(columns, "chunk", run.length, Int16Array),
  ]);
  const tasks = run.reduce((sum, length) => sum + length, 0);
  if (tasks !== count) throw new Error(`column run has labels for ${tasks} tasks, expected ${count}`);
  const microBatch = new Int16Array(count);
  const layer = new Int16Array(count);
  const chunk = new Int16Array(count);
  for (let place = 0, task = 0; place < run.length; ++place) {
    for (const after = task + run[place]; task < after; ++task) {
      microBatch[task] = ofMicroBatch[place];
      layer[task] = ofLayer[place];
      chunk[task] = ofChunk[place];
    }
  }
  return {microBatch, layer, chunk};
}

/** Times from gaps and durations. Ticks are added up as integers, which a double holds exactly, and scaled last. */
function place(timeline: Timeline, gap: Uint32Array, duration: Uint32Array) {
  const start_s = new Float64Array(gap.length);
  const end_s = new Float64Array(gap.length);
  const busyUpTo_s = new Float64Array(gap.length + 1);
  let task = 0;
  const rows = timeline.rows.map(({stage, rank, name, streams}) => {
    const placed = streams.map(stream => {
      const first = task;
      for (let ticks = 0; task < first + stream.tasks; ++task) {
        ticks += gap[task];
        start_s[task] = ticks * timeline.tick_s;
        ticks += duration[task];
        end_s[task] = ticks * timeline.tick_s;
        busyUpTo_s[task + 1] = busyUpTo_s[task] + duration[task] * timeline.tick_s;
      }
      return {name: timeline.streams[stream.stream] ?? `stream ${stream.stream}`, first, last: task};
    });
    return {stage, rank, name, streams: placed};
  });
  return {rows, start_s, end_s, busyUpTo_s};
}
