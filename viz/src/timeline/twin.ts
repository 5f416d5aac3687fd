// The same task or pass in the other timeline: simulated and measured run every stream in the same order.

import type {Hit} from "./hit";
import type {Layout} from "./layout";
import type {Model, ModelRow} from "./model";

/** Null where the timelines differ in what they ran. `line` is -1 where the other does not show it. */
export function twinOf(models: readonly Model[], layout: Layout, hit: Hit, timeline: number): Hit | null {
  const model = models[timeline];
  const row = model.rows[hit.row];
  if (!row || timeline === hit.timeline) return null;
  const mine = models[hit.timeline];
  const index = hit.kind === "pass" ? samePass(mine.rows[hit.row], row, hit.index) : sameTask(mine, model, hit);
  if (index < 0) return null;

  const {stream, top} = layout.lines[hit.line];
  const line = layout.lines.findIndex(one => one.timeline === timeline && one.row === hit.row && one.stream === stream);
  const shift = line < 0 ? 0 : layout.lines[line].top - top;
  const {start_s, end_s} = hit.kind === "pass" ? row.blocks : model.tasks;
  return {...hit, timeline, line, index, start_s: start_s[index], end_s: end_s[index], top: hit.top + shift};
}

function samePass({blocks: mine}: ModelRow, {blocks: other}: ModelRow, index: number): number {
  const same = mine.pass[index] === other.pass[index] && mine.microBatch[index] === other.microBatch[index];
  return same && mine.chunk[index] === other.chunk[index] ? index : -1;
}

function sameTask(mine: Model, other: Model, {row, index}: Hit): number {
  const stream = mine.rows[row].streams.find(({first, last}) => index >= first && index < last);
  const twin = other.rows[row].streams.find(({name}) => name === stream?.name);
  if (!stream || !twin || twin.last - twin.first !== stream.last - stream.first) return -1;
  const task = twin.first + index - stream.first;
  const nameIn = ({tasks}: Model, task: number) => tasks.types[tasks.type[task]].name;
  return nameIn(mine, index) === nameIn(other, task) && mine.tasks.microBatch[index] === other.tasks.microBatch[task] ? task : -1;
}
