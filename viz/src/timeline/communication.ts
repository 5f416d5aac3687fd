// A row's communication in one lane: what its streams other than compute do, and which of it no kernel hides.

import type {Stream, Tasks} from "./decode";

/** Pieces of communication tasks, in time's order and without overlap. Where several tasks run, the last to start is shown. */
export interface Pieces {
  start_s: Float64Array;
  end_s: Float64Array;
  task: Uint32Array;
  exposed: Uint8Array; // 1: no kernel runs meanwhile
  exposedUpTo_s: Float64Array; // of all pieces before; one more than pieces
}

interface Growing {
  start_s: number[];
  end_s: number[];
  task: number[];
  exposed: number[];
}

export function piecesOf(tasks: Tasks, streams: Stream[], kernels: Stream | undefined): Pieces {
  const flat = flattened(tasks, byStart(tasks, streams));
  const pieces = kernels ? splitByKernels(tasks, flat, kernels) : flat;
  const exposedUpTo_s = new Float64Array(pieces.task.length + 1);
  for (let piece = 0; piece < pieces.task.length; ++piece) {
    const time_s = pieces.exposed[piece] ? pieces.end_s[piece] - pieces.start_s[piece] : 0;
    exposedUpTo_s[piece + 1] = exposedUpTo_s[piece] + time_s;
  }
  return {
    start_s: Float64Array.from(pieces.start_s),
    end_s: Float64Array.from(pieces.end_s),
    task: Uint32Array.from(pieces.task),
    exposed: Uint8Array.from(pieces.exposed),
    exposedUpTo_s,
  };
}

/** Tasks of all streams by their start; of those that start together, streams in their order. Each stream is in order already. */
function byStart({start_s}: Tasks, streams: Stream[]): Uint32Array {
  const order = new Uint32Array(streams.reduce((sum, {first, last}) => sum + last - first, 0));
  const next = Uint32Array.from(streams, ({first}) => first);
  for (let at = 0; at < order.length; ++at) {
    let earliest = -1;
    for (let stream = 0; stream < streams.length; ++stream) {
      if (next[stream] === streams[stream].last) continue;
      if (earliest < 0 || start_s[next[stream]] < start_s[next[earliest]]) earliest = stream;
    }
    order[at] = next[earliest]++;
  }
  return order;
}

function add(to: Growing, start_s: number, end_s: number, task: number, exposed: number) {
  if (end_s <= start_s) return;
  const last = to.task.length - 1;
  if (to.task[last] === task && to.exposed[last] === exposed && to.end_s[last] === start_s) {
    to.end_s[last] = end_s;
    return;
  }
  to.start_s.push(start_s);
  to.end_s.push(end_s);
  to.task.push(task);
  to.exposed.push(exposed);
}

function flattened({start_s, end_s}: Tasks, order: Uint32Array): Growing {
  const out: Growing = {start_s: [], end_s: [], task: [], exposed: []};
  const running: number[] = []; // the last to start on top
  let now_s = 0;
  const runUntil = (until_s: number) => {
    while (running.length > 0 && now_s < until_s) {
      const top = running[running.length - 1];
      const stop_s = Math.min(end_s[top], until_s);
      add(out, now_s, stop_s, top, 1);
      now_s = Math.max(now_s, stop_s);
      if (end_s[top] <= now_s) running.pop();
    }
    now_s = until_s;
  };
  for (const task of order) {
    runUntil(start_s[task]);
    running.push(task);
  }
  runUntil(Infinity);
  return out;
}

function splitByKernels({start_s, end_s}: Tasks, pieces: Growing, kernels: Stream): Growing {
  const out: Growing = {start_s: [], end_s: [], task: [], exposed: []};
  let kernel = kernels.first;
  for (let piece = 0; piece < pieces.task.length; ++piece) {
    const task = pieces.task[piece];
    const stop_s = pieces.end_s[piece];
    let now_s = pieces.start_s[piece];
    while (kernel < kernels.last && end_s[kernel] <= now_s) ++kernel;
    for (let k = kernel; now_s < stop_s; ++k) {
      const busyFrom_s = k < kernels.last ? Math.min(start_s[k], stop_s) : stop_s;
      const busyTo_s = k < kernels.last ? Math.min(end_s[k], stop_s) : stop_s;
      add(out, now_s, busyFrom_s, task, 1);
      add(out, Math.max(now_s, busyFrom_s), busyTo_s, task, 0);
      now_s = Math.max(now_s, busyTo_s);
    }
  }
  return out;
}
