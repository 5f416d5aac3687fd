// What a study is drawn over.
import assert from 'node:assert/strict'
import test from 'node:test'
import { load } from './load.mjs'

const [{ shortNames, studyAxis }] = await load('study_axis.ts')

const point = (parameters, gpus, status = gpus === null ? 'refused' : 'done') => ({
  parameters,
  status,
  sentence: '',
  result: gpus === null ? null : { gpus },
})
const study = points => ({
  points,
  parameters: Object.keys(points[0].parameters).map(name => ({
    name,
    values: [...new Set(points.map(({ parameters }) => parameters[name]))],
  })),
})

test('GPUs, where they vary; what follows from them makes no curves', () => {
  const axis = studyAxis(
    study(
      [8, 16, 32].flatMap(dp =>
        ['none', 'full'].map(recompute =>
          point({ 'parallelism.dp': dp, 'training.global_batch': dp * 16, 'training.recompute': recompute }, dp * 128)
        )
      )
    )
  )
  assert.equal(axis.title, 'GPUs')
  assert.deepEqual(axis.values, [1024, 2048, 4096])
  assert.deepEqual([axis.curveBy, axis.curves, axis.panels], ['recompute', ['none', 'full'], ['']])
  assert.equal(axis.logarithmic, true)
})

test('a point without a result is placed by its like, or by cluster.gpus, or not at all', () => {
  const like = studyAxis(
    study([
      point({ dp: 8, recompute: 'none' }, 1024),
      point({ dp: 16, recompute: 'none' }, 2048),
      point({ dp: 8, recompute: 'full' }, null),
    ])
  )
  assert.deepEqual(
    like.placed.map(({ x }) => x),
    [0, 1, 0]
  )
  const given = studyAxis(
    study([point({ 'cluster.gpus': 64 }, 64), point({ 'cluster.gpus': 128 }, 128), point({ 'cluster.gpus': 96 }, null)])
  )
  assert.deepEqual(given.values, [64, 96, 128])
  const lost = studyAxis(study([point({ dp: 8 }, 1024), point({ dp: 16 }, 2048), point({ dp: 5 }, null)]))
  assert.deepEqual([lost.placed.length, lost.unplaced.length], [2, 1])
})

test('else the first number that varies', () => {
  const axis = studyAxis(study(['tp-dp-pp', 'dp-tp-pp'].flatMap(order => [1, 2, 3].map(by => point({ order, by }, 512)))))
  assert.deepEqual([axis.title, axis.values, axis.logarithmic, axis.curves], ['by', [1, 2, 3], false, ['tp-dp-pp', 'dp-tp-pp']])
})

test('else the first word; a third parameter makes panels', () => {
  const axis = studyAxis(
    study(['a', 'b'].flatMap(order => ['x', 'y'].flatMap(fabric => [true, false].map(sp => point({ order, fabric, sp }, 512)))))
  )
  assert.deepEqual(
    [axis.title, axis.values, axis.curves, axis.panels],
    ['order', ['a', 'b'], ['x', 'y'], ['sp true', 'sp false']]
  )
})

test('points that are no grid stand by rank, the best first', () => {
  const plans = [[1, 2, 'a'], [1, 4, 'b'], [2, 1, 'a'], [2, 8, 'c']]
  const points = plans.map(([tp, pp, schedule], i) => point({ 'parallelism.tp': tp, pp, vpp: i, schedule }, 512))
  ;[0.3, 0.5, 0.4].forEach((mfu, i) => (points[i].result.mfu = mfu))
  points[3] = { ...points[3], status: 'refused', result: null }
  const axis = studyAxis(study(points))
  assert.deepEqual([axis.ranked, axis.values, axis.panels, axis.curves], [true, [1, 2, 3], [''], ['']])
  assert.deepEqual(
    axis.placed.map(({ point: { result }, x }) => [x, result.mfu]),
    [[0, 0.5], [1, 0.4], [2, 0.3]]
  )
  assert.equal(axis.names[0], '1: tp 1, pp 4, vpp 1, schedule b')
  assert.equal(axis.unplaced.length, 1)
})

test('a single point is a study, too', () => {
  const axis = studyAxis(study([point({ tp: 8 }, 512)]))
  assert.deepEqual([axis.values, axis.placed.length, axis.logarithmic], [[8], 1, false])
})

test('names are short where that is plain', () => {
  const short = shortNames(['training.recompute', 'cluster.gpus', 'faults.slow_gpu.factor', 'faults.slow_nic.factor'])
  assert.deepEqual(['training.recompute', 'faults.slow_gpu.factor'].map(short), ['recompute', 'faults.slow_gpu.factor'])
})
