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

export function piecesOf(tasks: Tasks, streams: Stream[], kernels: Stream | undefined): Pieces {
  const pieces = new GrowingPieces();
  const add: AddPiece = kernels
    ? splitByKernels(tasks, kernels, pieces)
    : (start_s, end_s, task) => pieces.add(start_s, end_s, task, 1);
  flatten(tasks, byStart(tasks, streams), add);
  return pieces.all();
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

/** Typed arrays that are made anew, twice as long, when they are full. */
class GrowingPieces {
  private count = 0;
  private start_s = new Float64Array(1024);
  private end_s = new Float64Array(1024);
  private task = new Uint32Array(1024);
  private exposed = new Uint8Array(1024);

  add(start_s: number, end_s: number, task: number, exposed: 0 | 1): void {
    if (end_s <= start_s) return;
    const last = this.count - 1;
    if (last >= 0 && this.task[last] === task && this.exposed[last] === exposed && this.end_s[last] === start_s) {
      this.end_s[last] = end_s;
      return;
    }
    if (this.count === this.task.length) this.grow();
    this.start_s[this.count] = start_s;
    this.end_s[this.count] = end_s;
    this.task[this.count] = task;
    this.exposed[this.count] = exposed;
    ++this.count;
  }

  all(): Pieces {
    const exposedUpTo_s = new Float64Array(this.count + 1);
    for (let piece = 0; piece < this.count; ++piece) {
      const time_s = this.exposed[piece] ? this.end_s[piece] - this.start_s[piece] : 0;
      exposedUpTo_s[piece + 1] = exposedUpTo_s[piece] + time_s;
    }
    return {
      start_s: this.start_s.slice(0, this.count),
      end_s: this.end_s.slice(0, this.count),
      task: this.task.slice(0, this.count),
      exposed: this.exposed.slice(0, this.count),
      exposedUpTo_s,
    };
  }

  private grow(): void {
    const {start_s, end_s, task, exposed} = this;
    const length = 2 * this.count;
    this.start_s = new Float64Array(length);
    this.end_s = new Float64Array(length);
    this.task = new Uint32Array(length);
    this.exposed = new Uint8Array(length);
    this.start_s.set(start_s);
    this.end_s.set(end_s);
    this.task.set(task);
    this.exposed.set(exposed);
  }
}

type AddPiece = (start_s: number, end_s: number, task: number) => void;

/** Adds, in time's order, what runs when; where several tasks do, the last to start. */
function flatten({start_s, end_s}: Tasks, order: Uint32Array, add: AddPiece): void {
  const running: number[] = []; // the last to start on top
  let now_s = 0;
  const runUntil = (until_s: number) => {
    while (running.length > 0 && now_s < until_s) {
      const top = running[running.length - 1];
      const stop_s = Math.min(end_s[top], until_s);
      add(now_s, stop_s, top);
      now_s = Math.max(now_s, stop_s);
      if (end_s[top] <= now_s) running.pop();
    }
    now_s = until_s;
  };
  for (let at = 0; at < order.length; ++at) {
    runUntil(start_s[order[at]]);
    running.push(order[at]);
  }
  runUntil(Infinity);
}

/** Returns what adds a piece in parts, those that kernels hide and those that they leave exposed. */
function splitByKernels({start_s, end_s}: Tasks, kernels: Stream, pieces: GrowingPieces): AddPiece {
  let kernel = kernels.first;
  return (from_s, stop_s, task) => {
    let now_s = from_s;
    while (kernel < kernels.last && end_s[kernel] <= now_s) ++kernel;
    for (let k = kernel; now_s < stop_s; ++k) {
      const busyFrom_s = k < kernels.last ? Math.min(start_s[k], stop_s) : stop_s;
      const busyTo_s = k < kernels.last ? Math.min(end_s[k], stop_s) : stop_s;
      pieces.add(now_s, busyFrom_s, task, 1);
      pieces.add(Math.max(now_s, busyFrom_s), busyTo_s, task, 0);
      now_s = Math.max(now_s, busyTo_s);
    }
  };
}
