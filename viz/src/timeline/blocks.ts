// Passes: what a row's kernels are drawn as where they are too narrow to see one by one.

import type {Phase} from "../report";
import type {Stream, Tasks} from "./decode";

export const phases: Phase[] = ["forward", "recompute", "backward-input", "backward-weight", "optimizer"];
export const passes = ["forward", "backward", "optimizer"] as const;
const passOfPhase = [0, 1, 1, 1, 2];

/** One pass of one micro-batch through one model chunk: consecutive kernels and the waits between them. In time's order. */
export interface Blocks {
  start_s: Float64Array;
  end_s: Float64Array;
  first: Uint32Array; // tasks [first, last)
  last: Uint32Array;
  pass: Uint8Array; // into passes
  microBatch: Int16Array;
  chunk: Int16Array;
  recompute: Float32Array; // share of the kernels' time, as the next
  weight: Float32Array;
}

/** A task's phase as an index into `phases`, by its type. */
export function phaseOfType(tasks: Tasks): Uint8Array {
  return Uint8Array.from(tasks.types, type => phases.indexOf(type.phase));
}

/** A wait longer than `longestGap_s` cuts a pass in two; the optimizer's, any wait does. */
export function blocksOf(tasks: Tasks, stream: Stream, phaseOf: Uint8Array, longestGap_s: number): Blocks {
  const {start_s, end_s, type, microBatch, chunk} = tasks;
  const passOfType = Uint8Array.from(phaseOf, phase => passOfPhase[phase]);
  const firsts: number[] = [];
  for (let task = stream.first, before = -1; task < stream.last; ++task) {
    const pass = passOfType[type[task]];
    const same =
      pass === before &&
      microBatch[task] === microBatch[task - 1] &&
      chunk[task] === chunk[task - 1] &&
      start_s[task] - end_s[task - 1] <= (pass === 2 ? 0 : longestGap_s);
    if (!same) firsts.push(task);
    before = pass;
  }
  const first = Uint32Array.from(firsts);
  const last = Uint32Array.from(firsts, (_, block) => firsts[block + 1] ?? stream.last);
  return {
    first,
    last,
    start_s: Float64Array.from(first, task => start_s[task]),
    end_s: Float64Array.from(last, task => end_s[task - 1]),
    pass: Uint8Array.from(first, task => passOfType[type[task]]),
    microBatch: Int16Array.from(first, task => microBatch[task]),
    chunk: Int16Array.from(first, task => chunk[task]),
    ...shares(tasks, first, last, phaseOf),
  };
}

function shares({start_s, end_s, type}: Tasks, first: Uint32Array, last: Uint32Array, phaseOf: Uint8Array) {
  const recompute = new Float32Array(first.length);
  const weight = new Float32Array(first.length);
  const busy_s = new Float64Array(phases.length);
  for (let block = 0; block < first.length; ++block) {
    busy_s.fill(0);
    for (let task = first[block]; task < last[block]; ++task) busy_s[phaseOf[type[task]]] += end_s[task] - start_s[task];
    let total_s = 0;
    for (const time_s of busy_s) total_s += time_s;
    total_s ||= 1;
    recompute[block] = busy_s[1] / total_s;
    weight[block] = busy_s[3] / total_s;
  }
  return {recompute, weight};
}
