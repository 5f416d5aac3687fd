// What a timeline is drawn from: decoding, passes, exposed communication, searches, the view, the layout; and what drawing costs.
import assert from 'node:assert/strict'
import test from 'node:test'
import { random as randomNumbers } from './fixtures/base.mjs'
import { load } from './load.mjs'
import { packed } from './packed.mjs'
import { encode, pipeline, types } from './timeline_encoding.mjs'

const {
  decode, blocksOf, phaseOfType, piecesOf, at, lowerBound, lowerBoundNear, upperBound, fitted, show, zoom, pan, xOf, timeOf, tickStep,
  tickLabel, layoutOf, lineAt, bottomOf, pathOf, modelOf, coloursOf, LanePainter, countOf, microBatchesInStep, mirroredStreams,
} = Object.assign({}, ...await load(...[
  'decode', 'blocks', 'communication', 'search', 'view', 'layout', 'path', 'model', 'colours', 'lane', 'repeat', 'mirror',
].map(name => `timeline/${name}.ts`)))

/// A stream of tasks with random waits, some of them none, in ticks.
function randomStream(random, count, type) {
  let now = 0
  return Array.from({ length: count }, () => {
    const start = now + (random() < 0.4 ? 0 : Math.floor(random() * 20))
    now = start + Math.floor(random() * 20)
    return { start, end: now, type, microBatch: Math.floor(random() * 3), chunk: 0 }
  })
}

const close = (actual, expected) => assert.ok(Math.abs(actual - expected) <= 1e-9 * Math.max(1, Math.abs(expected)), `${actual} for ${expected}`)

async function checkDecoded(plan) {
  const tasks = await decode(encode(plan))
  let task = 0
  for (const [r, row] of plan.rows.entries()) {
    for (const [s, stream] of row.streams.entries()) {
      const { name, first, last } = tasks.rows[r].streams[s]
      assert.deepEqual([name, first, last], [plan.streams[stream.stream], task, task + stream.tasks.length])
      for (const expected of stream.tasks) {
        const same = tasks.start_s[task] === expected.start * plan.tick_s && tasks.end_s[task] === expected.end * plan.tick_s &&
          tasks.type[task] === expected.type && tasks.microBatch[task] === (expected.microBatch ?? -1) &&
          tasks.layer[task] === (expected.layer ?? -1) && tasks.chunk[task] === (expected.chunk ?? -1)
        if (!same) assert.fail(`task ${task} of row ${r}, ${name}`)
        ++task
      }
    }
  }
  assert.equal(tasks.start_s.length, task)
  return task
}

test('decoding gives back what was encoded: 83 thousand tasks of 16 stages', async () => {
  // by the formula in pipeline's comment
  assert.equal(await checkDecoded(pipeline({ stages: 16, microBatches: 16, layers: 54 })), 16 * (16 * (6 * 54 + 1) + 2))
})

test('decoding gives back what was encoded: 700 thousand tasks of 16 stages', async () => {
  assert.equal(await checkDecoded(pipeline({ stages: 16, microBatches: 60, layers: 121 })), 16 * (60 * (6 * 121 + 1) + 2))
})

/// What `few` has, with the tasks that start in [from, to) said to happen `times` more.
function repeated(few, from, to, times, microBatches) {
  const timeline = encode(few)
  const before = (tasks, date) => tasks.filter(({ start }) => start < date).length
  for (const [r, { streams }] of few.rows.entries()) {
    for (const [s, { tasks }] of streams.entries()) timeline.rows[r].streams[s].repeated = [before(tasks, from), before(tasks, to)]
  }
  const repeat = { times, length_s: (to - from) * few.tick_s, micro_batches: microBatches, second_half_from: 0 }
  return { ...timeline, step_s: few.step_s + times * repeat.length_s, repeat }
}

test('of a step folded in time, decoding gives the whole step', async () => {
  const layers = 3, stages = 4
  for (const period of [1, 2, 3]) {
    const [few, all] = [16, 16 + 5 * period].map(microBatches => pipeline({ stages, microBatches, layers }))
    const from = few.rows[0].streams[0].tasks.find(({ microBatch, type }) => microBatch === 9 && type === 0).start
    const timeline = repeated(few, from, from + period * 3 * layers * 1000, 5, period)
    const [folded, whole] = await Promise.all([decode(timeline), decode(encode(all))])
    assert.equal(countOf(timeline), whole.start_s.length)
    close(folded.step_s, whole.step_s)
    assert.deepEqual(folded.rows, whole.rows)
    for (const name of ['type', 'microBatch', 'layer', 'chunk']) assert.deepEqual(folded[name], whole[name])
    for (const name of ['start_s', 'end_s', 'busyUpTo_s']) folded[name].forEach((value, i) => close(value, whole[name][i]))
  }
})

test('micro-batches of the second copy of a model come after those that the first leaves out', () => {
  const repeat = { times: 5, length_s: 1, micro_batches: 2, second_half_from: 8 }
  const inColumns = Int16Array.of(-1, 7, 8, 15)
  assert.deepEqual(microBatchesInStep(inColumns, 0, repeat), Int16Array.of(-1, 7, 18, 25))
  assert.deepEqual(microBatchesInStep(inColumns, 5, repeat), Int16Array.of(-1, 17, 28, 35))
  assert.deepEqual(microBatchesInStep(inColumns, 5, { ...repeat, second_half_from: 0 }), Int16Array.of(-1, 17, 18, 25))
  assert.deepEqual(microBatchesInStep(inColumns, 0, undefined), inColumns)
})

test('a stage that mirrors another does what that does, with the copies of the model exchanged', async () => {
  const plan = pipeline({ stages: 4, microBatches: 8, layers: 3 })
  const timeline = encode({ ...plan, rows: plan.rows.slice(0, 2) })
  const own = await decode(timeline)
  timeline.rows.push(...[1, 0].map((mirrors, i) => ({ ...timeline.rows[mirrors], stage: 2 + i, streams: [], mirrors })))
  const mirror = { micro_batches: 4, streams: [[1, 2]] }
  const tasks = await decode({ ...timeline, mirror })
  const count = own.start_s.length
  assert.equal(tasks.start_s.length, 2 * count)
  assert.deepEqual(tasks.rows.slice(0, 2), own.rows)
  let seen = 0
  for (const [row, mirrors] of [[2, 1], [3, 0]]) {
    for (const stream of tasks.rows[row].streams) {
      const number = timeline.streams.indexOf(stream.name)
      const other = timeline.streams[{ 1: 2, 2: 1 }[number] ?? number]
      const same = own.rows[mirrors].streams.find(({ name }) => name === other)
      assert.equal(stream.last - stream.first, same.last - same.first)
      for (let task = stream.first; task < stream.last; ++task, ++seen) {
        const twin = same.first + task - stream.first
        for (const name of ['start_s', 'end_s', 'type', 'layer']) assert.equal(tasks[name][task], own[name][twin])
        const [chunk, microBatch] = [own.chunk[twin], own.microBatch[twin]]
        assert.equal(tasks.chunk[task], chunk < 0 ? chunk : 1 - chunk)
        assert.equal(tasks.microBatch[task], microBatch < 0 ? microBatch : (microBatch + 4) % 8)
      }
    }
  }
  assert.equal(seen, count)
  close(tasks.busyUpTo_s[2 * count], 2 * own.busyUpTo_s[count])
  assert.deepEqual(mirroredStreams([{ stream: 0 }, { stream: 2 }, { stream: 5 }], { streams: [[2, 7]] }).map(({ stream }) => stream), [0, 5, 7])
})

test('times beyond 2^32 ticks are exact, and so are the extremes of the labels', async () => {
  const start = 3 * 2 ** 32 + 1
  const tasks = [0, 1, 2, 3].map(i => ({ start: i * (2 ** 32 - 1), end: i * (2 ** 32 - 1) + i, type: 1, layer: 32767, chunk: -1, microBatch: 32767 }))
  tasks.push({ start: start + 7, end: start + 8, type: 1 })
  const rows = [{ stage: 0, rank: 0, name: 'rank 0', streams: [{ stream: 0, tasks }] }]
  await checkDecoded({ tick_s: 1e-9, step_s: 20, streams: ['compute'], types, rows })
})

test('a column that does not fit the tasks is refused by name', async () => {
  const whole = encode(pipeline({ stages: 2, microBatches: 2, layers: 1 }))
  const refusing = (name, column, why) =>
    assert.rejects(decode({ ...whole, columns: { ...whole.columns, [name]: column } }), why)
  await refusing('gap', whole.columns.layer, /column gap/)
  await refusing('layer', whole.columns.gap, /column layer has 64 numbers, expected 20/)
  await refusing('layer', 'AAAA')
  await refusing('run', packed(Uint32Array, new Array(20).fill(1)), /column run has labels for 20 tasks, expected 32/)
  await refusing('run', packed(Uint8Array, [1, 0]), /column run ends in a number of 4 bytes that is not whole/)
})

test('no rows, and rows without tasks, decode to nothing', async () => {
  assert.equal((await decode(encode({ tick_s: 1, step_s: 0, streams: [], types: [], rows: [] }))).start_s.length, 0)
  const rows = [{ stage: 0, rank: 0, name: 'rank 0', streams: [{ stream: 0, tasks: [] }] }]
  assert.equal((await decode(encode({ tick_s: 1, step_s: 1, streams: ['compute'], types, rows }))).rows[0].streams[0].last, 0)
})

test('a pass is a block; its weight gradients take 900 of 1800 us of kernels', async () => {
  const [stages, microBatches, layers] = [4, 6, 3]
  const tasks = await decode(encode(pipeline({ stages, microBatches, layers })))
  for (const { streams: [compute] } of tasks.rows) {
    const blocks = blocksOf(tasks, compute, phaseOfType(tasks), 1e-3)
    assert.equal(blocks.start_s.length, 2 * microBatches + 1)
    for (const [pass, kernels, weight, span_s] of [[0, 2 * layers, 0, layers * 1e-3], [1, 2 * layers, 0.5, layers * 2e-3 - 0.2e-3]]) {
      const indices = [...blocks.pass.keys()].filter(block => blocks.pass[block] === pass)
      assert.deepEqual(indices.map(block => blocks.microBatch[block]), [...Array(microBatches).keys()])
      for (const block of indices) {
        assert.equal(blocks.last[block] - blocks.first[block], kernels)
        close(blocks.weight[block], weight)
        close(blocks.end_s[block] - blocks.start_s[block], span_s)
        assert.equal(blocks.recompute[block], 0)
      }
    }
    assert.equal(blocks.pass.at(-1), 2)
    assert.equal(blocks.last.at(-1), compute.last)
  }
})

test('a wait longer than allowed cuts a pass; every kernel is in one block', async () => {
  const random = randomNumbers(7)
  const compute = randomStream(random, 500, 1)
  const rows = [{ stage: 0, rank: 0, name: '', streams: [{ stream: 0, tasks: compute }] }]
  const tasks = await decode(encode({ tick_s: 1, step_s: 1, streams: ['compute'], types, rows }))
  const blocks = blocksOf(tasks, tasks.rows[0].streams[0], phaseOfType(tasks), 10)
  const cuts = compute.filter(
    (task, i) => i > 0 && (task.microBatch !== compute[i - 1].microBatch || task.start - compute[i - 1].end > 10)).length
  assert.equal(blocks.first.length, cuts + 1)
  assert.equal(blocks.last.at(-1), 500)
  for (let block = 1; block < blocks.first.length; ++block) assert.equal(blocks.first[block], blocks.last[block - 1])
})

test('exposed communication: tick by tick, on random streams', async () => {
  for (let seed = 1; seed <= 20; ++seed) {
    const random = randomNumbers(seed)
    const streams = [randomStream(random, 60, 1), randomStream(random, 40, 5), randomStream(random, 25, 8)]
    const rows = [{ stage: 0, rank: 0, name: '', streams: streams.map((tasks, stream) => ({ stream, tasks })) }]
    const tasks = await decode(encode({ tick_s: 1, step_s: 1, streams: ['compute', 'tp', 'dp'], types, rows }))
    const [compute, ...others] = tasks.rows[0].streams
    const pieces = piecesOf(tasks, others, compute)
    const runs = (list, tick) => list.find(({ start, end }) => start <= tick && tick < end)
    const end = Math.max(...streams.flat().map(task => task.end))
    let piece = 0
    let exposed = 0
    for (let tick = 0; tick < end; ++tick) {
      const running = [runs(streams[1], tick), runs(streams[2], tick)].filter(Boolean)
      while (piece < pieces.task.length && pieces.end_s[piece] <= tick) ++piece
      const shown = piece < pieces.task.length && pieces.start_s[piece] <= tick
      assert.equal(shown, running.length > 0, `seed ${seed}, tick ${tick}`)
      if (!shown) continue
      assert.equal(tasks.start_s[pieces.task[piece]], Math.max(...running.map(({ start }) => start)))
      assert.equal(pieces.exposed[piece], runs(streams[0], tick) ? 0 : 1)
      exposed += pieces.exposed[piece]
    }
    assert.equal(pieces.exposedUpTo_s.at(-1), exposed)
  }
})

test('searches agree with a walk', () => {
  const random = randomNumbers(3)
  const stream = randomStream(random, 200, 0)
  const start = Float64Array.from(stream, task => task.start)
  const end = Float64Array.from(stream, task => task.end)
  for (let tick = -5; tick < stream.at(-1).end + 5; tick += 0.5) {
    const first = values => { const found = values.findIndex(value => value >= tick); return found < 0 ? 200 : found }
    assert.equal(lowerBound(start, 0, 200, tick), first(start))
    assert.equal(lowerBoundNear(start, 0, 200, tick), first(start))
    assert.equal(upperBound(end, 0, 200, tick), end.filter(value => value <= tick).length)
    const found = at(start, end, 0, 200, tick, 3)
    const distance = i => Math.max(0, start[i] - tick, tick - end[i])
    const nearest = Math.min(...[...stream.keys()].map(distance))
    if (nearest > 3) assert.equal(found, -1)
    else assert.equal(distance(found), nearest, `tick ${tick}`)
  }
})

test('zooming keeps the time under the pointer; nothing leaves the step', () => {
  const random = randomNumbers(5)
  const view = fitted(10, 1000)
  for (let i = 0; i < 500; ++i) {
    const x = random() * 1000
    const before_s = timeOf(view, x)
    const factor = Math.exp(random() * 2 - 0.8)
    const [start_s, end_s] = [view.start_s, view.end_s]
    zoom(view, factor, x)
    const wanted_s = (end_s - start_s) / factor
    const free = view.start_s > 0 && view.end_s < 10 && wanted_s > 1e-6
    if (free) assert.ok(Math.abs(xOf(view, before_s) - x) < 1e-3, `${xOf(view, before_s)} for ${x}`)
    assert.ok(view.start_s >= 0 && view.end_s <= 10 + 1e-12 && view.end_s > view.start_s)
  }
  show(view, 4, 6)
  pan(view, 250)
  close(view.start_s, 4.5)
  pan(view, Infinity)
  close(view.end_s, 10)
  pan(view, -Infinity)
  assert.equal(view.start_s, 0)
  zoom(view, 1e30, 500)
  close(view.end_s - view.start_s, 50e-9)
})

test('ticks are 1, 2 or 5 times a power of ten, and as dense as allowed', () => {
  for (let span_s = 1.3e-7; span_s < 100; span_s *= 1.37) {
    const step_s = tickStep(span_s, 12)
    const mantissa = step_s / 10 ** Math.floor(Math.log10(step_s * 1.0000001))
    assert.ok([1, 2, 5].some(factor => Math.abs(factor - mantissa) < 1e-6), `${step_s}`)
    assert.ok(span_s / step_s <= 12 && span_s / step_s > 12 / 2.6, `${span_s}: ${step_s}`)
  }
  assert.equal(tickLabel(1.25, 0.05, 2), '1.25 s')
  assert.equal(tickLabel(0.0123, 0.0001, 0.9), '12.3 ms')
  assert.equal(tickLabel(0.00034, 0.00002, 0.0009), '340 µs')
  assert.equal(tickLabel(1.2, 0.2, 2), '1.2 s')
})

const streamsOf = count => Array.from({ length: count }, (_, i) => ({ name: `${i}`, first: 0, last: 0 }))
const model = (rows, hasCommunication = true) => ({ rows: Array.from({ length: rows }, () => ({ streams: streamsOf(3) })), hasCommunication })

test('rows of two timelines stand below one another; expanded ones show their streams; lines do not overlap', () => {
  const { lines, height } = layoutOf([model(3), model(2)], new Set(['1/0']))
  assert.deepEqual(lines.map(({ row, timeline, stream }) => [row, timeline, stream]),
    [[0, 0, -1], [0, 1, -1], [0, 1, 0], [0, 1, 1], [0, 1, 2], [1, 0, -1], [1, 1, -1], [2, 0, -1]])
  for (const rows of [1, 5, 9, 24, 64]) {
    const layout = layoutOf([model(rows)], new Set(['0/0']))
    for (const [index, line] of layout.lines.entries()) {
      assert.ok(line.top >= (index > 0 ? bottomOf(layout.lines[index - 1]) : 0))
      assert.equal(lineAt(layout, line.top + 1), index)
    }
    assert.equal(lineAt(layout, -1), -1)
    assert.equal(lineAt(layout, layout.height + 50), -1)
    assert.ok(layout.height >= bottomOf(layout.lines.at(-1)))
  }
  assert.ok(height >= bottomOf(lines.at(-1)))
  assert.equal(layoutOf([model(1, false)], new Set()).lines[0].communication, 0)
})

test('the critical path joins what follows on a row and hops between rows that are drawn', () => {
  const segment = (row, start_s, end_s) => ({ row, start_s, end_s, kind: '', task: '', tasks: 1 })
  const path = pathOf([segment(0, 0, 1), segment(0, 1, 3), segment(2, 3, 4), segment(-1, 4, 5), segment(1, 5, 6), segment(0, 6, 7)], 3)
  assert.deepEqual(path.rows.map(({ start_s, end_s }) => [...start_s].map((start, i) => [start, end_s[i]])), [[[0, 3], [6, 7]], [[5, 6]], [[3, 4]]])
  assert.deepEqual([...path.hops.time_s].map((time_s, i) => [time_s, path.hops.from[i], path.hops.to[i]]), [[3, 0, 2], [6, 1, 0]])
})

/// Counts what is drawn, and gives every text the same mask.
function countingPainter(width) {
  const count = { fills: 0, texts: 0 }
  const fill = () => { ++count.fills }
  const surface = { width, height: 1000, rect: fill, blend: fill, text: () => { ++count.texts } }
  return [new LanePainter(surface, { use() {}, of: () => ({ width: 1, height: 1, coverage: new Uint8Array(1) }) }), count]
}

/// The same array, whose elements are counted as they are read.
const counted = (array, count) => new Proxy(array, {
  get(target, key) {
    ++count.reads
    return target[key]
  },
})

// A lane is drawn bucket by bucket, of a pixel each. What begins in a bucket and is narrower is one item; what is wider is an item, and
// of these there are no more than pixels, as they do not overlap. So a lane has at most two items a pixel, and some at the edges. An
// item is found by two searches at most, and looks at 24 tasks at most for its colour. Nothing of that grows with the tasks but the
// searches, as their logarithm.
test('what a frame draws follows from its pixels, not from its tasks', async () => {
  const width = 1000
  for (const plan of [{ stages: 1, microBatches: 16, layers: 54 }, { stages: 1, microBatches: 160, layers: 540 }]) {
    const model = await modelOf('', encode(pipeline(plan)))
    const { step_s } = model.tasks
    const [row] = model.rows
    const reads = { reads: 0 }
    const watched = items => ({ ...items, start_s: counted(items.start_s, reads), end_s: counted(items.end_s, reads) })
    const tasks = watched(model.tasks)
    const blocks = watched(row.blocks)
    const communication = watched(row.communication)
    const lanes = {
      tasks: painter => painter.tasks({ ...model, tasks }, row.kernels.first, row.kernels.last, 0, 20, true),
      blocks: painter => painter.blocks(blocks, 0, 20, true),
      pieces: painter => painter.pieces(model, communication, 20, 28),
    }
    const fillsOfItem = { tasks: 1, blocks: 3, pieces: 2 }
    for (const share of [1, 0.9, 0.3, 0.02, 0.0005]) {
      const view = fitted(step_s, width)
      show(view, 0.4 * (1 - share) * step_s, (0.4 + 0.6 * share) * step_s)
      for (const [name, draw] of Object.entries(lanes)) {
        const [painter, count] = countingPainter(width)
        painter.begin(view, 1, coloursOf('light'))
        reads.reads = 0
        draw(painter)
        const items = 2 * (width + 2)
        const said = `${share} of ${row.kernels.last} kernels as ${name}: ${JSON.stringify({ ...count, ...reads })}`
        assert.ok(count.fills > 0 && count.fills <= items * fillsOfItem[name], said)
        assert.ok(count.texts <= items, said)
        assert.ok(reads.reads > 0 && reads.reads <= items * (4 * 24 + 4 * Math.log2(row.kernels.last) + 8), said)
      }
    }
  }
})
