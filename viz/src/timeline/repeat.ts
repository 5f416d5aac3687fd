// What happens more than once in a step, and stands in its columns once.

import type {Repeat, StreamTasks, Timeline} from "../report";

/** Tasks [first, after) of a stream's in the columns, as they happen for the `time`-th time again. */
export interface Part {
  first: number;
  after: number;
  time: number;
}

/** In the order in which they happen. */
export function partsOf({tasks, repeated}: StreamTasks, repeat: Repeat | undefined): Part[] {
  if (!repeat || !repeated) return [{first: 0, after: tasks, time: 0}];
  const [first, after] = repeated;
  const again = Array.from({length: repeat.times}, (_, before) => ({first, after, time: before + 1}));
  return [{first: 0, after, time: 0}, ...again, {first: after, after: tasks, time: repeat.times}];
}

/** How many tasks the step has. */
export function countOf({rows, repeat}: Timeline): number {
  const countIn = ({tasks, repeated}: StreamTasks) => tasks + (repeat && repeated ? repeat.times * (repeated[1] - repeated[0]) : 0);
  return rows.reduce((sum, {streams, mirrors}) => {
    const ofRow = mirrors === undefined ? streams : rows[mirrors].streams;
    return ofRow.reduce((tasks, stream) => tasks + countIn(stream), sum);
  }, 0);
}

/** Which micro-batches of the step those of some tasks in the columns are, when these happen for the `time`-th time again. */
export function microBatchesInStep(inColumns: Int16Array, time: number, repeat: Repeat | undefined): Int16Array {
  if (!repeat) return inColumns;
  const {times, micro_batches, second_half_from} = repeat;
  const ofFirst = time * micro_batches;
  const ofSecond = second_half_from > 0 ? (time + times) * micro_batches : ofFirst;
  return inColumns.map(microBatch => microBatch < 0 ? microBatch : microBatch + (microBatch < second_half_from ? ofFirst : ofSecond));
}
