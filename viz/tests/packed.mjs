// Columns and critical paths as report.ts has them.
import zlib from 'node:zlib'

export const packed = (Kind, values) => zlib.deflateSync(Buffer.from(Kind.from(values).buffer)).toString('base64')

/// The columns of tasks' labels: {microBatch, layer, chunk} of each, -1 where it has none.
export function packedLabels(labels) {
  const runs = []
  for (const { microBatch = -1, layer = -1, chunk = -1 } of labels) {
    const last = runs.at(-1)
    if (last && last.microBatch === microBatch && last.layer === layer && last.chunk === chunk) ++last.tasks
    else runs.push({ tasks: 1, microBatch, layer, chunk })
  }
  const column = (Kind, valueOf) => packed(Kind, runs.map(valueOf))
  return {
    run: column(Uint32Array, ({ tasks }) => tasks),
    micro_batch: column(Int16Array, ({ microBatch }) => microBatch),
    layer: column(Int16Array, ({ layer }) => layer),
    chunk: column(Int16Array, ({ chunk }) => chunk),
  }
}

/// Segments are {row, start_s, end_s, kind, task, tasks}, each from where the one before it ends.
export function packedPath(segments, kinds, tick_s = 1e-9) {
  const names = [...new Set(segments.flatMap(({ kind, task }) => [kind, task]))]
  const ticks = time_s => Math.round(time_s / tick_s)
  const column = (Kind, valueOf) => packed(Kind, segments.map(valueOf))
  return {
    tick_s,
    segments: segments.length,
    names,
    columns: {
      row: column(Int16Array, ({ row }) => row),
      duration: column(Uint32Array, ({ start_s, end_s }) => ticks(end_s) - ticks(start_s)),
      kind: column(Uint32Array, ({ kind }) => names.indexOf(kind)),
      task: column(Uint32Array, ({ task }) => names.indexOf(task)),
      tasks: column(Uint32Array, ({ tasks }) => tasks),
    },
    kinds,
  }
}
