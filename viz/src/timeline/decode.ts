// The columns of a timeline, back from base64 and zlib, as typed arrays by task.

import {column, columnOfAnyLength} from "../columns";
import type {TaskType, Timeline} from "../report";
import {mirroredChunks, mirroredMicroBatches, mirroredStreams} from "./mirror";
import {countOf, microBatchesInStep, partsOf} from "./repeat";

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

/** By task of the columns. */
interface Columns {
  gap: Uint32Array;
  duration: Uint32Array;
  type: Uint32Array;
  microBatch: Int16Array;
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
  return {step_s: timeline.step_s, types: timeline.types, ...place(timeline, {gap, duration, type, ...labels})};
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

/** The tasks of the step; those of rows that mirror others come last. */
function place(timeline: Timeline, columns: Columns) {
  const {mirror, repeat, tick_s} = timeline;
  const count = countOf(timeline);
  const start_s = new Float64Array(count);
  const end_s = new Float64Array(count);
  const type = new Uint32Array(count);
  const microBatch = new Int16Array(count);
  const layer = new Int16Array(count);
  const chunk = new Int16Array(count);
  const ticksOfTime = repeat ? repeat.length_s / tick_s : 0;
  let first = 0; // task of a stream
  let inColumns = 0;
  const nameOf = (stream: number) => timeline.streams[stream] ?? `stream ${stream}`;
  const rows: Row[] = timeline.rows.map(({stage, rank, name, streams}) => {
    const ofRow = streams.map(stream => {
      const ticks = ticksOf(columns, inColumns, stream.tasks);
      let last = first;
      for (const part of partsOf(stream, repeat)) {
        const from = inColumns + part.first;
        const to = inColumns + part.after;
        const shift = part.time * ticksOfTime;
        for (let at = part.first, task = last; at < part.after; ++at, ++task) {
          start_s[task] = (ticks.start[at] + shift) * tick_s;
          end_s[task] = (ticks.end[at] + shift) * tick_s;
        }
        if (last > first) beginNoEarlier(start_s, end_s, last, last + to - from);
        type.set(columns.type.subarray(from, to), last);
        layer.set(columns.layer.subarray(from, to), last);
        chunk.set(columns.chunk.subarray(from, to), last);
        microBatch.set(microBatchesInStep(columns.microBatch.subarray(from, to), part.time, repeat), last);
        last += to - from;
      }
      const placed = {name: nameOf(stream.stream), first, last};
      first = last;
      inColumns += stream.tasks;
      return placed;
    });
    return {stage, rank, name, streams: ofRow};
  });
  for (const [row, {mirrors}] of timeline.rows.entries()) {
    if (!mirror || mirrors === undefined) continue;
    rows[row].streams = mirroredStreams(timeline.rows[mirrors].streams, mirror).map(({stream, place: at}) => {
      const from = rows[mirrors].streams[at];
      for (const same of [start_s, end_s, type, layer]) same.copyWithin(first, from.first, from.last);
      chunk.set(mirroredChunks(chunk.subarray(from.first, from.last)), first);
      microBatch.set(mirroredMicroBatches(microBatch.subarray(from.first, from.last), mirror), first);
      const placed = {name: nameOf(stream), first, last: first + from.last - from.first};
      first = placed.last;
      return placed;
    });
  }
  const busyUpTo_s = new Float64Array(count + 1);
  for (let task = 0; task < count; ++task) busyUpTo_s[task + 1] = busyUpTo_s[task] + end_s[task] - start_s[task];
  return {rows, start_s, end_s, busyUpTo_s, type, microBatch, layer, chunk};
}

/** Where one part ends and the next begins, rounding to ticks may have tasks overlap by one. */
function beginNoEarlier(start_s: Float64Array, end_s: Float64Array, first: number, after: number): void {
  for (let task = first; task < after && start_s[task] < end_s[task - 1]; ++task) {
    start_s[task] = end_s[task - 1];
    end_s[task] = Math.max(end_s[task], start_s[task]);
  }
}

/** When tasks of a stream start and end. Ticks are added up as integers, which a double holds exactly, and scaled last. */
function ticksOf({gap, duration}: Columns, before: number, count: number) {
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  for (let at = 0, now = 0; at < count; ++at) {
    start[at] = now + gap[before + at];
    now = start[at] + duration[before + at];
    end[at] = now;
  }
  return {start, end};
}
