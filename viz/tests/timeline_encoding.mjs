// Timelines for tests: the encoding of report.ts, and a pipeline to encode.
import { packed, packedLabels } from './packed.mjs'

/// Rows are {stage, rank, name, streams: [{stream, tasks}]}, tasks {start, end, type, microBatch, layer, chunk} in ticks.
export function encode({ tick_s, step_s, streams, types, rows }) {
  const columns = { gap: [], duration: [], type: [] }
  const labels = []
  for (const row of rows) {
    for (const { tasks } of row.streams) {
      let end = 0
      for (const task of tasks) {
        columns.gap.push(task.start - end)
        columns.duration.push(task.end - task.start)
        columns.type.push(task.type)
        labels.push(task)
        end = task.end
      }
    }
  }
  return {
    tick_s, step_s, streams, types,
    rows: rows.map(row => ({
      stands_for: 1, ...row, streams: row.streams.map(({ stream, tasks }) => ({ stream, tasks: tasks.length })),
    })),
    columns: {
      ...Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, packed(Uint32Array, values)])),
      ...packedLabels(labels),
    },
  }
}

const kernel = (name, op, phase, flops, bytes) => ({
  name, op, kind: 'kernel', phase, axis: 'none', operands: 'bf16[8192,1,16384] bf16[2304,16384] -> bf16[8192,1,2304]', flops, bytes,
  bound: flops > 0 ? 'arithmetic' : 'memory',
})
const collective = (name, op, phase, axis, bytes, ranks, bound) => ({
  name, op, kind: 'communication', phase, axis, operands: 'bf16[1024,1,16384] -> bf16[8192,1,16384]', flops: 0, bytes, bound,
  communicator: axis, ranks,
})

export const types = [
  kernel('norm', 'norm', 'forward', 0, 67e6),
  kernel('mlp up', 'gemm', 'forward', 3.6e12, 920e6),
  kernel('mlp up', 'gemm', 'backward-input', 3.6e12, 920e6),
  kernel('mlp up', 'gemm', 'backward-weight', 3.6e12, 608e6),
  kernel('adam', 'adam', 'optimizer', 0, 1e9),
  collective('mlp up', 'all_gather', 'forward', 'tp', 268e6, 8, 'nvlink'),
  collective('mlp up', 'reduce_scatter', 'backward-input', 'tp', 268e6, 8, 'nvlink'),
  collective('send forward', 'send', 'forward', 'pp', 33e6, 2, 'nic'),
  collective('gradients', 'reduce_scatter', 'backward-weight', 'dp', 800e6, 128, 'spine'),
]

/// One forward, one backward in turn, in ticks of 1 us: every layer a norm, a matrix product and a collective in between, and its
/// gradients. The tasks of a row are 2 forward and 2 backward kernels and 2 collectives of each layer and micro-batch, a send per
/// micro-batch, and at the end a reduction and an optimizer step.
export function pipeline({ stages, microBatches, layers }) {
  const layerForward = 1000
  const forward = layers * layerForward
  const backward = 2 * forward
  const rows = Array.from({ length: stages }, (_, stage) => {
    const compute = [], tp = [], pp = [], dp = []
    const early = Math.min(microBatches, stages - stage - 1)  // forwards before the first backward
    const place = (microBatch, begin, isForward) => {
      for (let layer = 0; layer < layers; ++layer) {
        const labels = { microBatch, layer: stage * layers + layer, chunk: 0 }
        const at = begin + layer * (isForward ? layerForward : 2 * layerForward)
        if (isForward) {
          compute.push({ start: at, end: at + 50, type: 0, ...labels }, { start: at + 250, end: at + 1000, type: 1, ...labels })
          tp.push({ start: at + 50, end: at + 250, type: 5, ...labels })
        } else {
          compute.push({ start: at + 200, end: at + 1100, type: 2, ...labels }, { start: at + 1100, end: at + 2000, type: 3, ...labels })
          tp.push({ start: at, end: at + 200, type: 6, ...labels })
        }
      }
      if (isForward) pp.push({ start: begin + forward, end: begin + forward + 400, type: 7, microBatch, chunk: 0 })
    }
    let now = stage * forward
    for (let microBatch = 0; microBatch < early; ++microBatch) place(microBatch, stage * forward + microBatch * forward, true)
    now = stage * forward + early * forward
    for (let microBatch = 0; microBatch < microBatches; ++microBatch) {
      if (early + microBatch < microBatches) {
        place(early + microBatch, now, true)
        now += forward
      }
      const ready = (2 * stages - stage) * forward + microBatch * (forward + backward)
      now = Math.max(now, ready)
      place(microBatch, now, false)
      now += backward
    }
    dp.push({ start: now, end: now + 5000, type: 8 })
    compute.push({ start: now + 5000, end: now + 6000, type: 4 })
    for (let i = 1; i < pp.length; ++i) pp[i].start = Math.max(pp[i].start, pp[i - 1].end)
    return {
      stage, rank: stage * 8, name: `rank ${stage * 8} · tp 0 · pp ${stage}`,
      streams: [compute, tp, pp, dp].map((tasks, stream) => ({ stream, tasks })),
    }
  })
  const last = Math.max(...rows.flatMap(row => row.streams.map(({ tasks }) => tasks.at(-1)?.end ?? 0)))
  return { tick_s: 1e-6, step_s: last * 1e-6, streams: ['compute', 'tp', 'pp send forward', 'dp'], types, rows }
}
