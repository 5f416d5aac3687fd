// The columns of a timeline, back from base64 and zlib, as typed arrays by task.

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
  const [gap, duration, type, microBatch, layer, chunk] = await Promise.all([
    column(columns.gap, "gap", count, Uint32Array),
    column(columns.duration, "duration", count, Uint32Array),
    column(columns.type, "type", count, Uint32Array),
    column(columns.micro_batch, "micro_batch", count, Int16Array),
    column(columns.layer, "layer", count, Int16Array),
    column(columns.chunk, "chunk", count, Int16Array),
  ]);
  const placed = place(timeline, gap, duration);
  return {step_s: timeline.step_s, types: timeline.types, ...placed, type, microBatch, layer, chunk};
}

type Numbers<T> = {new (buffer: ArrayBuffer): T; BYTES_PER_ELEMENT: number};

async function column<T extends {length: number}>(base64: string, name: string, count: number, Kind: Numbers<T>): Promise<T> {
  const bytes = await inflate(fromBase64(base64));
  if (bytes.byteLength !== count * Kind.BYTES_PER_ELEMENT) {
    throw new Error(`timeline: column ${name} has ${bytes.byteLength / Kind.BYTES_PER_ELEMENT} numbers for ${count} tasks`);
  }
  return new Kind(bytes);
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  if (bytes.length === 0) return new ArrayBuffer(0);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
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
