// The reading of a trace that pictures are drawn from.
import assert from 'node:assert/strict'
import test from 'node:test'
import { blocksOf, stagesOf, total_ms } from '../tools/blocks.mjs'

const process = (pid, name) => ({ ph: 'M', pid, tid: 1, name: 'process_name', args: { name } })
const thread = (pid, tid, name) => ({ ph: 'M', pid, tid, name: 'thread_name', args: { name } })
const slice = (pid, tid, begin_ms, end_ms, phase, micro_batch, chunk = 0) =>
  ({ ph: 'X', pid, tid, ts: begin_ms * 1e3, dur: (end_ms - begin_ms) * 1e3, name: 'kernel', args: { phase, micro_batch, chunk } })

const trace = {
  traceEvents: [
    process(9, 'rank 8 · tp 0 · pp 1 · dp 0'), thread(9, 1, 'compute'),
    process(1, 'rank 0 · tp 0 · pp 0 · dp 0'), thread(1, 1, 'compute'), thread(1, 2, 'tp'), thread(1, 6, 'pp send forward'),
    process(2, 'rank 1 · tp 1 · pp 0 · dp 0'), thread(2, 1, 'compute'),
    slice(1, 1, 0, 1, 'forward', 0), slice(1, 2, 1, 2, 'forward', 0), slice(1, 1, 2, 3, 'forward', 0),
    slice(1, 6, 3, 4, 'forward', 0),
    slice(1, 1, 3, 5, 'forward', 1),
    slice(1, 1, 5, 6, 'backward-input', 0), slice(1, 1, 6, 9, 'backward-weight', 0),
    slice(1, 1, 20, 21, 'backward-input', 0),
    slice(2, 1, 0, 30, 'forward', 0),
    slice(9, 1, 4, 5, 'forward', 0),
  ],
}

test('a stage is its first process, and stages come in order', () => {
  assert.deepEqual(stagesOf(trace).map(({ stage, pid }) => [stage, pid]), [[0, 1], [1, 9]])
})

test('a block is one pass of one micro-batch; a long wait cuts it', () => {
  const blocks = blocksOf(stagesOf(trace)[0], 5)
  assert.deepEqual(blocks.map(({ pass, microBatch, begin_ms, end_ms }) => [pass, microBatch, begin_ms, end_ms]), [
    ['forward', 0, 0, 3], ['forward', 1, 3, 5], ['backward', 0, 5, 9], ['backward', 0, 20, 21],
  ])
})

test('the weight gradient has its share of the kernels: 3 ms of 4', () => {
  assert.deepEqual(blocksOf(stagesOf(trace)[0], 5).map(({ weightShare }) => weightShare), [0, 0, 0.75, 0])
})

test('blocks hold every kernel and tensor-parallel collective once', () => {
  const [stage] = stagesOf(trace)
  const inBlocks = blocksOf(stage, 5).flatMap(({ spans }) => spans)
  assert.equal(inBlocks.length, 7)
  assert.equal(total_ms(inBlocks), 1 + 1 + 1 + 2 + 1 + 3 + 1)
})
