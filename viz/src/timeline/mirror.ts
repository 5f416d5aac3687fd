// What a stage's mirror does: the same as the stage, each copy of the model in the place of the other.

import type {Mirror, StreamTasks} from "../report";

/** Streams of a row, in the order of their numbers on its mirror; `place` is where each stands in the row. */
export function mirroredStreams(streams: StreamTasks[], {streams: pairs}: Mirror): {stream: number; place: number}[] {
  const other = new Map(pairs.flatMap(([one, another]) => [[one, another], [another, one]]));
  const mirrored = streams.map(({stream}, place) => ({stream: other.get(stream) ?? stream, place}));
  return mirrored.sort((a, b) => a.stream - b.stream);
}

export function mirroredChunks(chunks: Int16Array): Int16Array {
  return chunks.map(chunk => chunk < 0 ? chunk : 1 - chunk);
}

export function mirroredMicroBatches(microBatches: Int16Array, {micro_batches}: Mirror): Int16Array {
  return microBatches.map(microBatch => {
    if (microBatch < 0) return microBatch;
    return microBatch < micro_batches ? microBatch + micro_batches : microBatch - micro_batches;
  });
}
