// What a tooltip says about a task or a pass.

import {bytes, bytesPerSecond, change, counted, flops, integer, percent, seconds} from "../format";
import type {TaskType} from "../report";
import {passes} from "./blocks";
import type {Stream, Tasks} from "./decode";
import type {Hit} from "./hit";
import type {Model} from "./model";
import {upperBound} from "./search";

export interface Description {
  title: string;
  subtitle: string;
  facts: [name: string, value: string][];
  place: string; // whose it is
}

/** `twins`: the same in other timelines. */
export function describe(models: readonly Model[], hit: Hit, twins: readonly Hit[]): Description {
  const model = models[hit.timeline];
  const row = model.rows[hit.row];
  const place = models.length > 1 ? `${model.title}: ${row.name}` : row.name;
  const description = hit.kind === "task" ? ofTask(model, row.kernels, hit.index) : ofPass(model, hit);
  for (const twin of twins) description.facts.push([models[twin.timeline].title, compared(twin, hit)]);
  return {...description, place};
}

function compared(twin: Hit, hit: Hit): string {
  const duration_s = twin.end_s - twin.start_s;
  const ratio = duration_s / (hit.end_s - hit.start_s);
  return `${seconds(duration_s)}${Number.isFinite(ratio) ? `, ${change(ratio - 1, percent)}` : ""}, from ${seconds(twin.start_s, 6)} on`;
}

function ofTask({tasks}: Model, kernels: Stream | undefined, task: number) {
  const type = tasks.types[tasks.type[task]];
  const duration_s = tasks.end_s[task] - tasks.start_s[task];
  const communication = type.kind === "communication";
  const facts: Description["facts"] = [
    ["operands", type.operands],
    ...work(type, duration_s),
    ["communicator", type.communicator ? `${type.communicator}${type.ranks ? `, ${counted(type.ranks, "rank")}` : ""}` : ""],
    ["bound by", type.bound],
    ["exposed", communication ? percent(exposed_s(tasks, kernels, task) / (duration_s || 1)) : ""],
    ["start", seconds(tasks.start_s[task], 6)],
    ["duration", seconds(duration_s)],
    ["layer", numbered(tasks.layer[task])],
    ["micro-batch", numbered(tasks.microBatch[task])],
    ["chunk", numbered(tasks.chunk[task])],
  ];
  return {title: type.name, subtitle: `${type.op} · ${type.phase}`, facts: facts.filter(([, value]) => value !== "")};
}

const numbered = (index: number) => (index < 0 ? "" : `${index}`);

/** A collective's rate is nccl-tests' algorithm bandwidth: its bytes over its time. */
function work(type: TaskType, duration_s: number): Description["facts"] {
  const rate = (amount: number, format: (perSecond: number) => string) => (duration_s > 0 ? ` at ${format(amount / duration_s)}` : "");
  const facts: Description["facts"] = [];
  if (type.flops > 0) facts.push(["work", flops(type.flops) + rate(type.flops, perSecond => `${flops(perSecond)}/s`)]);
  if (type.bytes > 0) facts.push(["bytes", bytes(type.bytes) + rate(type.bytes, perSecond => bytesPerSecond(perSecond, 4))]);
  return facts;
}

/** How long no kernel of its row ran during a task. */
export function exposed_s({start_s, end_s}: Tasks, kernels: Stream | undefined, task: number): number {
  let rest_s = end_s[task] - start_s[task];
  if (!kernels) return rest_s;
  for (let k = upperBound(end_s, kernels.first, kernels.last, start_s[task]); k < kernels.last && start_s[k] < end_s[task]; ++k) {
    rest_s -= Math.min(end_s[k], end_s[task]) - Math.max(start_s[k], start_s[task]);
  }
  return Math.max(0, rest_s);
}

function ofPass({tasks, rows}: Model, {row, index, start_s, end_s}: Hit) {
  const {blocks} = rows[row];
  const first = blocks.first[index];
  const last = blocks.last[index];
  const busy_s = tasks.busyUpTo_s[last] - tasks.busyUpTo_s[first];
  const part = (share: number) => (share > 0 ? `${seconds(share * busy_s)}, ${percent(share)} of them` : "");
  const facts: Description["facts"] = [
    ["start", seconds(start_s, 6)],
    ["duration", seconds(end_s - start_s)],
    [counted(last - first, "kernel"), `${seconds(busy_s)}, ${percent(busy_s / (end_s - start_s || 1))} of the time`],
    ["recomputation", part(blocks.recompute[index])],
    ["weight gradients", part(blocks.weight[index])],
    ["layers", layers(tasks, first, last)],
    ["micro-batch", numbered(blocks.microBatch[index])],
    ["chunk", numbered(blocks.chunk[index])],
  ];
  const title = blocks.pass[index] === 2 ? passes[2] : `${passes[blocks.pass[index]]} pass`;
  return {title, subtitle: "", facts: facts.filter(([, value]) => value !== "")};
}

function layers({layer}: Tasks, first: number, last: number): string {
  let lowest = Infinity;
  let highest = -1;
  for (let task = first; task < last; ++task) {
    if (layer[task] < 0) continue;
    lowest = Math.min(lowest, layer[task]);
    highest = Math.max(highest, layer[task]);
  }
  if (highest < 0) return "";
  return lowest === highest ? integer(lowest) : `${integer(lowest)} to ${integer(highest)}`;
}
