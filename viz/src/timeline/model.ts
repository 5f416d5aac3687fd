// Everything a timeline is drawn from, worked out once after it is decoded.

import type {Axis, Timeline} from "../report";
import {blocksOf, type Blocks, phaseOfType} from "./blocks";
import {type Pieces, piecesOf} from "./communication";
import {decode, type Row, type Stream, type Tasks} from "./decode";

export const axes: readonly (Axis | "none")[] = ["tp", "cp", "ep", "pp", "dp", "none"];

export interface ModelRow extends Row {
  kernels: Stream | undefined;
  blocks: Blocks;
  communication: Pieces;
}

export interface Model {
  title: string;
  tasks: Tasks;
  rows: ModelRow[];
  phaseOf: Uint8Array; // by type, into blocks.phases
  axisOf: Uint8Array; // by type, into axes
  isKernel: Uint8Array; // by type
  meanKernel_s: number; // which decides from where on kernels are drawn one by one
  hasCommunication: boolean;
}

const longestGapInBlock = 1 / 400; // of the step: what is not seen when all of it is in view

const longestWork_ms = 30; // in which the page does not answer

/** Row by row, letting the page breathe in between. A timeout after others takes 4 ms at least, so not after each. */
export async function modelOf(title: string, timeline: Timeline): Promise<Model> {
  const tasks = await decode(timeline);
  const phaseOf = phaseOfType(tasks);
  const rows: ModelRow[] = [];
  let breathed_ms = performance.now();
  for (const row of tasks.rows) {
    const kernels = row.streams.find(stream => stream.name === "compute");
    const others = row.streams.filter(stream => stream !== kernels);
    const blocks = blocksOf(tasks, kernels ?? {name: "", first: 0, last: 0}, phaseOf, tasks.step_s * longestGapInBlock);
    rows.push({...row, kernels, blocks, communication: piecesOf(tasks, others, kernels)});
    if (performance.now() - breathed_ms < longestWork_ms) continue;
    await new Promise(resolve => setTimeout(resolve));
    breathed_ms = performance.now();
  }
  return {
    title,
    tasks,
    rows,
    phaseOf,
    axisOf: Uint8Array.from(tasks.types, type => axes.indexOf(type.axis)),
    isKernel: Uint8Array.from(tasks.types, type => Number(type.kind === "kernel")),
    meanKernel_s: meanKernel_s(tasks, rows),
    hasCommunication: rows.some(row => row.communication.task.length > 0),
  };
}

function meanKernel_s({start_s, end_s}: Tasks, rows: ModelRow[]): number {
  let sum_s = 0;
  let count = 0;
  for (const {kernels} of rows) {
    for (let task = kernels?.first ?? 0; task < (kernels?.last ?? 0); ++task, ++count) sum_s += end_s[task] - start_s[task];
  }
  return count > 0 ? sum_s / count : 0;
}
