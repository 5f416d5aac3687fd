// Reports made by hand, for tests of the page: small pipelines whose parts do add up, drawn from a seed. No figure here is a
// measurement. See ../src/report.ts for what the fields mean.
import zlib from 'node:zlib'

const axes = ['tp', 'cp', 'ep', 'pp', 'dp']
const byAxis = values => Object.fromEntries(axes.map(axis => [axis, values[axis] ?? 0]))
const sum = values => values.reduce((total, value) => total + value, 0)

/// A generator of numbers in [0, 1), the same for the same seed (mulberry32).
export function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const head = (kind, title) => ({ kind, tandem: '0.1.0', title, command: `tandem simulate scenarios/${title}.yaml --report ${title}.html` })

/// What a layer does: task, operation, phase, milliseconds, axis of communication.
const layer = [
  ['attention norm', 'norm', 'forward', 0.05], ['attention norm', 'all_gather', 'forward', 0.3, 'tp'], ['qkv', 'gemm', 'forward', 0.5],
  ['attention', 'attention', 'forward', 0.9], ['attention output', 'gemm', 'forward', 0.4], ['attention output', 'reduce_scatter', 'forward', 0.3, 'tp'],
  ['mlp up', 'gemm', 'forward', 1.4], ['activation', 'activation', 'forward', 0.15], ['mlp down', 'gemm', 'forward', 0.7],
  ['mlp down', 'backward', 'backward-input', 0.7], ['mlp down', 'gemm', 'backward-weight', 0.7], ['mlp up', 'gemm', 'backward-input', 1.4],
  ['mlp up', 'gemm', 'backward-weight', 1.4], ['mlp up', 'reduce_scatter', 'backward-input', 0.3, 'tp'],
  ['attention', 'attention', 'recompute', 0.9], ['attention', 'attention_backward', 'backward-input', 1.9], ['qkv', 'gemm', 'backward-input', 0.5],
  ['qkv', 'gemm', 'backward-weight', 0.5], ['attention norm', 'all_gather', 'backward-input', 0.3, 'tp'],
].map(([name, op, phase, ms, axis]) => ({ name, op: op === 'backward' ? 'gemm' : op, phase, seconds: ms / 1e3, axis: axis ?? 'none' }))
const isBackward = task => task.phase !== 'forward'

/// A 1F1B pipeline. Blocks, one pass of one micro-batch on one stage, start as early as the stage and the neighbours let them.
function schedule({ stages, microBatches, layers, slow = () => 1, tp, hop_s }) {
  const tasksOf = (stage, backward) => Array.from({ length: layers }, (_, at) =>
    layer.filter(task => isBackward(task) === backward && (tp > 1 || task.axis !== 'tp'))
      .map(task => ({ ...task, layer: stage * layers + at, seconds: task.seconds * slow(stage) }))).flat()
  const orders = Array.from({ length: stages }, (_, stage) => {
    const warmUp = Math.min(stages - stage - 1, microBatches)
    const order = Array.from({ length: warmUp }, (_, m) => [false, m])
    for (let m = 0; m < microBatches - warmUp; ++m) order.push([false, m + warmUp], [true, m])
    for (let m = microBatches - warmUp; m < microBatches; ++m) order.push([true, m])
    return order.map(([backward, microBatch]) => ({ stage, backward, microBatch, tasks: tasksOf(stage, backward) }))
  })
  const ends = new Map()
  const key = (stage, backward, microBatch) => `${stage} ${backward} ${microBatch}`
  const next = orders.map(() => 0)
  const free = orders.map(() => 0)
  for (let left = stages * microBatches * 2; left > 0;) {
    orders.forEach((order, stage) => {
      const block = order[next[stage]]
      if (!block) return
      const { backward, microBatch } = block
      const first = backward ? stage === stages - 1 : stage === 0
      const needed = first ? (backward ? key(stage, false, microBatch) : null) : key(backward ? stage + 1 : stage - 1, backward, microBatch)
      if (needed !== null && !ends.has(needed)) return
      const arrives = needed === null ? 0 : ends.get(needed) + (first ? 0 : hop_s)
      block.start = Math.max(free[stage], arrives)
      block.waitsFor = arrives > free[stage] ? needed : null
      block.end = block.start + sum(block.tasks.map(({ seconds }) => seconds))
      ends.set(key(stage, backward, microBatch), block.end)
      free[stage] = block.end
      ++next[stage]
      --left
    })
  }
  return orders
}

function encoded(values, Kind) {
  return zlib.deflateSync(Buffer.from(Kind.from(values).buffer)).toString('base64')
}

/// Tasks of rows as the columns of a Timeline.
function timelineOf(rows, step_s, streams) {
  const tick_s = 1e-9
  const types = []
  const known = new Map()
  const columns = { gap: [], duration: [], type: [], micro_batch: [], layer: [], chunk: [] }
  const described = rows.map(row => {
    const used = []
    streams.forEach((_, stream) => {
      const tasks = row.tasks.filter(task => task.stream === stream).sort((a, b) => a.start - b.start)
      if (tasks.length === 0) return
      used.push({ stream, tasks: tasks.length })
      let before = 0
      for (const { start, end, ...task } of tasks) {
        const id = `${task.name}|${task.op}|${task.phase}|${task.axis}`
        if (!known.has(id)) {
          known.set(id, types.length)
          types.push({
            name: task.name, op: task.op, kind: task.axis === 'none' ? 'kernel' : 'communication', phase: task.phase, axis: task.axis,
            operands: 'bf16[8192,1,8192] bf16[7168,8192] -> bf16[8192,1,7168]', flops: task.axis === 'none' ? 9.62e11 : 0, bytes: 369098752,
            bound: task.axis === 'none' ? 'arithmetic' : task.axis === 'tp' ? 'nvlink' : 'nic',
            ...task.axis === 'none' ? {} : { communicator: task.axis, ranks: 8 },
          })
        }
        const from = Math.round(start / tick_s)
        columns.gap.push(Math.max(0, from - before))
        columns.duration.push(Math.round(end / tick_s) - from)
        before = Math.max(before, Math.round(end / tick_s))
        columns.type.push(known.get(id))
        columns.micro_batch.push(task.microBatch ?? -1)
        columns.layer.push(task.layer ?? -1)
        columns.chunk.push(task.chunk ?? -1)
      }
    })
    const { tasks, ...rest } = row
    return { ...rest, streams: used }
  })
  const kinds = { gap: Uint32Array, duration: Uint32Array, type: Uint32Array, micro_batch: Int16Array, layer: Int16Array, chunk: Int16Array }
  return {
    tick_s, step_s, streams, rows: described, types,
    columns: Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, encoded(values, kinds[name])])),
  }
}

/// The chain that ends last: backwards from the end, to the block that was waited for or the one before on the stage.
function criticalPath(orders, tail, step_s) {
  const blocks = new Map(orders.flat().map(block => [`${block.stage} ${block.backward} ${block.microBatch}`, block]))
  const segments = []
  const add = (row, start_s, end_s, kind, task) => segments.push({ row, start_s, end_s, kind, task, tasks: 1 })
  let at = tail.stage
  let block = orders[at].at(-1)
  let until = step_s
  for (const task of [...tail.tasks].reverse()) {
    add(at, task.start, until, task.axis === 'none' ? `${task.op} ${task.phase}` : `${task.op} (${task.axis})`, task.name)
    until = task.start
  }
  while (block) {
    let end = block.end
    if (until > end) add(block.stage, end, until, 'wait', 'wait')
    for (const task of [...block.tasks].reverse()) {
      add(block.stage, end - task.seconds, end, task.axis === 'none' ? `${task.op} ${task.phase}` : `${task.op} (${task.axis})`, task.name)
      end -= task.seconds
    }
    until = block.start
    if (block.waitsFor) {
      const from = blocks.get(block.waitsFor)
      if (until > from.end) add(block.stage, from.end, until, from.stage === block.stage ? 'wait' : 'receive (pp)', 'receive')
      until = from.end
      block = from
    } else block = orders[block.stage][orders[block.stage].indexOf(block) - 1]
  }
  segments.reverse()
  if (segments.length) segments[0].start_s = 0
  const merged = []
  for (const segment of segments.filter(({ start_s, end_s }) => end_s > start_s)) {
    const last = merged.at(-1)
    if (last && last.row === segment.row && last.kind === segment.kind && last.end_s === segment.start_s) {
      last.end_s = segment.end_s
      last.tasks += segment.tasks
    } else merged.push(segment)
  }
  const kinds = new Map()
  for (const { kind, start_s, end_s } of merged) kinds.set(kind, (kinds.get(kind) ?? 0) + end_s - start_s)
  return { segments: merged, kinds: [...kinds].map(([name, time_s]) => ({ name, time_s })).sort((a, b) => b.time_s - a.time_s) }
}

function memoryOf(orders, stage, { gpu_bytes, perMicroBatch, step_s }) {
  const stay = { parameters: 4.3e9 + (stage === 0 ? 3e8 : 0), gradients: 8.6e9, optimizer: 1.6e9 }
  const t_s = [0]
  const activations = [0]
  const buffers = [0]
  let peak = { bytes: 0, at: 0 }
  const note = (t, held, buffer) => {
    t_s.push(t)
    activations.push(held)
    buffers.push(buffer)
    const all = sum(Object.values(stay)) + held + buffer
    if (all > peak.bytes) peak = { bytes: all, at: t }
  }
  let held = 0
  for (const block of orders[stage]) {
    const change = (block.backward ? -1 : 1) * perMicroBatch / 4
    for (let part = 0; part < 4; ++part) {
      held = Math.max(0, held + change)
      note(block.start + (part + 0.5) / 4 * (block.end - block.start), held, part % 2 ? 2.7e8 : 1.3e8)
    }
  }
  note(orders[stage].at(-1).end, 0, 0)
  const at = t_s.indexOf(peak.at)
  return {
    stage, rank: stage * 8, gpu_bytes, ...stay, peak_at_s: peak.at, peak_bytes: peak.bytes, peak_task: 'mlp up, backward-input, micro-batch 3 of layer 11',
    largest: [['mlp up', 0.4], ['activation', 0.25], ['attention', 0.15], ['qkv', 0.1], ['attention norm', 0.1]]
      .map(([what, part]) => ({ what, bytes: Math.round(part * activations[at]) })).filter(({ bytes }) => bytes > 0),
    t_s, activations, buffers,
  }
}

function linksOf(rows, step_s, { tp, dp, stages }) {
  const bins = 160
  const edges_s = Array.from({ length: bins + 1 }, (_, at) => at * step_s / bins)
  const busy = (tasks, axis) => {
    const parts = new Array(bins).fill(0)
    for (const { start, end } of tasks.filter(task => task.axis === axis)) {
      for (let bin = Math.floor(start / step_s * bins); bin < bins && edges_s[bin] < end; ++bin) {
        parts[bin] += Math.max(0, Math.min(end, edges_s[bin + 1]) - Math.max(start, edges_s[bin])) / (step_s / bins)
      }
    }
    return parts.map(part => Math.min(1, part))
  }
  const mean = lists => lists[0].map((_, at) => sum(lists.map(list => list[at])) / lists.length)
  const scaled = (list, by) => list.map(value => value * by)
  const nvlink = mean(rows.map(({ tasks }) => busy(tasks, 'tp')))
  const pp = mean(rows.map(({ tasks }) => busy(tasks, 'pp')))
  const nic = mean(rows.map(({ tasks }) => busy(tasks, 'dp'))).map((value, at) => Math.min(1, value * 0.92 + pp[at] * 0.4))
  const tiers = [
    { tier: 'nvlink', links: 1024, capacity: 364.5e9, utilisation: scaled(nvlink, 0.94) },
    { tier: 'nic', links: 1024, capacity: 48e9, utilisation: nic },
    { tier: 'leaf', links: 128, capacity: 48e9, utilisation: scaled(nic, 0.6) },
    { tier: 'spine', links: 64, capacity: 48e9, utilisation: scaled(nic, 0.21) },
  ].filter(({ tier }) => tier === 'nvlink' ? tp > 1 : dp > 1 || stages > 1)
  const links = []
  const binSeconds = step_s / bins
  rows.forEach((row, at) => {
    const own = busy(row.tasks, 'tp')
    if (tp > 1) {
      const carried = sum(own) * 0.94 * binSeconds * 364.5e9
      links.push({ name: `gpu ${row.rank} to the NVSwitches`, tier: 'nvlink', stands_for: 128, capacity: 364.5e9, bytes: carried,
        utilisation: scaled(own, 0.94), users: [{ communicator: `tp of ranks ${row.rank}-${row.rank + 7}`, axis: 'tp', bytes: carried }] })
    }
    if (dp > 1 || stages > 1) {
      const reduced = busy(row.tasks, 'dp')
      const sent = busy(row.tasks, 'pp')
      const utilisation = reduced.map((value, bin) => Math.min(1, value * 0.92 + sent[bin] * 0.4))
      const carried = sum(utilisation) * binSeconds * 48e9
      const users = [{ communicator: `dp of rank ${row.rank}`, axis: 'dp', bytes: carried * (dp > 1 ? 0.8 : 0) },
        { communicator: `pp forward ${at} to ${at + 1}`, axis: 'pp', bytes: carried * (dp > 1 ? 0.12 : 0.6) },
        { communicator: `pp backward ${at + 1} to ${at}`, axis: 'pp', bytes: carried * (dp > 1 ? 0.08 : 0.4) }].filter(({ bytes }) => bytes > 0)
      links.push({ name: `nic ${row.rank} to leaf ${row.rank % 8}`, tier: 'nic', stands_for: 128, capacity: 48e9, bytes: carried, utilisation, users })
    }
  })
  links.sort((a, b) => b.bytes / b.capacity - a.bytes / a.capacity)
  return { edges_s, tiers, links: links.slice(0, 64) }
}

function meshOf({ tp, stages, dp, gpusPerNode }) {
  const sizes = [['tp', tp], ['dp', dp], ['pp', stages]]
  let stride = 1
  const laid = sizes.map(([axis, size]) => {
    const one = { axis, size, stride, nodes: Math.max(1, Math.ceil(size * stride / gpusPerNode / Math.max(1, stride / gpusPerNode))), reach: 'node' }
    stride *= size
    if (one.stride * size > gpusPerNode) one.reach = axis === 'dp' ? 'rail' : stride > 512 ? 'core' : 'pod'
    return one
  })
  const gpus = tp * dp * stages
  return {
    gpus, gpus_per_node: gpusPerNode, nodes: Math.ceil(gpus / gpusPerNode), axes: laid.filter(({ size }) => size > 1),
    gpus_drawn: Array.from({ length: Math.min(64, gpus) }, (_, gpu) =>
      byAxis(Object.fromEntries(laid.map(({ axis, size, stride: step }) => [axis, Math.floor(gpu / step) % size])))),
  }
}

const defaults = { name: 'hand-made-70b', stages: 4, microBatches: 12, layers: 3, tp: 8, dp: 16, gpusPerNode: 8, gpu_bytes: 84.9e9, perMicroBatch: 4.2e9,
  hop_s: 0.4e-3, slow: stage => stage === 3 ? 1.06 : 1, warnings: [] }

/// A StepReport.
export function step(options = {}) {
  const o = { ...defaults, ...options }
  const orders = schedule(o)
  const streams = ['compute', 'tp', 'dp', 'pp send forward', 'pp send backward']
  const ends = orders.map(order => order.at(-1).end)
  const reduce_s = o.dp > 1 ? 3e-3 : 0
  const adam_s = 1.2e-3
  const step_s = Math.max(...ends) + reduce_s + adam_s
  const last = ends.indexOf(Math.max(...ends))
  const rows = orders.map((order, stage) => {
    const tasks = []
    for (const { start, tasks: own, microBatch, backward, end } of order) {
      let at = start
      for (const task of own) {
        tasks.push({ ...task, microBatch, chunk: 0, start: at, end: at + task.seconds, stream: task.axis === 'none' ? 0 : 1 })
        at += task.seconds
      }
      const sends = backward ? stage > 0 : stage < o.stages - 1
      if (sends) tasks.push({ name: `send ${backward ? 'backward' : 'forward'}`, op: 'send', phase: backward ? 'backward-input' : 'forward', axis: 'pp',
        microBatch, chunk: 0, start: end, end: end + o.hop_s, stream: backward ? 4 : 3 })
    }
    const end = ends[stage]
    if (reduce_s) tasks.push({ name: 'gradients', op: 'reduce_scatter', phase: 'backward-weight', axis: 'dp', start: end, end: end + reduce_s, stream: 2 })
    tasks.push({ name: 'adam', op: 'adam', phase: 'optimizer', axis: 'none', start: step_s - adam_s, end: step_s, stream: 0 })
    return { stage, rank: stage * o.tp * o.dp, stands_for: o.tp * o.dp, name: `rank ${stage * o.tp * o.dp} · tp 0 · dp 0 · pp ${stage} ×${o.tp * o.dp}`, tasks }
  })

  const stages_s = rows.map(({ stage, tasks }) => {
    const of = phase => sum(tasks.filter(task => task.axis === 'none' && task.phase === phase).map(task => task.end - task.start))
    const exposed = byAxis({ tp: sum(tasks.filter(task => task.axis === 'tp').map(task => task.end - task.start)), dp: reduce_s })
    const one = { stage, ranks: o.tp * o.dp, forward: of('forward'), backward_input: of('backward-input'), backward_weight: of('backward-weight'),
      recompute: of('recompute'), exposed, bubble: 0, optimizer: adam_s }
    one.bubble = step_s - one.forward - one.backward_input - one.backward_weight - one.recompute - sum(Object.values(exposed)) - adam_s
    return one
  })
  const mean = of => sum(stages_s.map(of)) / stages_s.length
  const time_s = {
    compute: mean(stage => stage.forward + stage.backward_input + stage.backward_weight + stage.recompute),
    exposed: Object.fromEntries(axes.map(axis => [axis, mean(stage => stage.exposed[axis])])),
    bubble: mean(stage => stage.bubble), optimizer: mean(stage => stage.optimizer),
  }
  const kinds = new Map()
  for (const task of rows.flatMap(({ tasks }) => tasks)) {
    const name = task.axis === 'none' ? task.op : `${task.op} (${task.axis})`
    const kind = kinds.get(`${name} ${task.phase}`) ?? { name, phase: task.phase, count: 0, time_s: 0 }
    kind.count += 1 / rows.length
    kind.time_s += (task.end - task.start) / rows.length
    kinds.set(`${name} ${task.phase}`, kind)
  }
  const memory = rows.map(({ stage }) => memoryOf(orders, stage, { ...o, step_s }))
  const peak_bytes = Math.max(...memory.map(stage => stage.peak_bytes))
  const gpus = o.tp * o.dp * o.stages
  const tokens = 8192 * o.microBatches * o.dp
  const mfu = 0.62 * time_s.compute / step_s
  const result = {
    scenario: o.name, gpus, gpu: 'h100-sxm-80gb', tokens, step_time_s: step_s, tokens_per_s_per_gpu: tokens / step_s / gpus,
    model_tflops_per_gpu: mfu * 989, mfu, hfu: mfu * 1.08, bubble_fraction: time_s.bubble / step_s, time_s, stages_s,
    kinds: [...kinds.values()].sort((a, b) => b.time_s - a.time_s),
    memory: {
      peak_bytes, gpu_bytes: o.gpu_bytes, fits: peak_bytes <= o.gpu_bytes,
      stages: memory.map(({ stage, parameters, gradients, optimizer, t_s, activations, buffers, peak_at_s, peak_bytes: peak }) => {
        const at = t_s.indexOf(peak_at_s)
        return { stage, parameters, gradients, optimizer, activations: activations[at], buffers: buffers[at], peak_bytes: peak, peak_at_s }
      }),
    },
    bounds_s: { lower: step_s * 0.57, upper: step_s * 1.32 }, warnings: o.warnings,
    run: { ranks: gpus, rank_classes: o.stages, link_classes: o.tp * o.dp > 1 ? 14 : 0, tasks: sum(rows.map(({ tasks }) => tasks.length)), wall_s: 0.213, peak_rss_bytes: 68e6,
      backend: 'simgrid', folded: true },
  }
  const path = criticalPath(orders, { stage: last, tasks: rows[last].tasks.filter(({ start }) => start >= ends[last] - 1e-12 && start < step_s)
    .filter(({ axis }) => axis !== 'pp').sort((a, b) => a.start - b.start) }, step_s)
  const gained = (group, name, part, factor = 1.1) => {
    const gained_s = part * (1 - 1 / factor)
    return { group, name, factor, step_time_s: step_s - gained_s, gained_s }
  }
  const onPath = test => sum(path.kinds.filter(({ name }) => test(name)).map(({ time_s: t }) => t))
  const blame = [
    gained('kernel', 'gemm', onPath(name => name.startsWith('gemm'))), gained('kernel', 'attention', onPath(name => name.startsWith('attention'))),
    gained('kernel', 'norm', onPath(name => name.startsWith('norm'))), gained('kernel', 'adam', adam_s),
    ...o.tp > 1 ? [gained('axis', 'tp', onPath(name => name.includes('(tp)'))), gained('tier', 'nvlink', 0.95 * onPath(name => name.includes('(tp)')))] : [],
    ...o.dp > 1 ? [gained('axis', 'dp', reduce_s), gained('tier', 'nic', 0.97 * reduce_s + onPath(name => name.includes('(pp)')))] : [],
    ...o.stages > 1 ? [gained('axis', 'pp', onPath(name => name.includes('(pp)'))), gained('stage', String(last), 0.6 * onPath(name => name !== 'wait'))] : [],
  ].sort((a, b) => b.gained_s - a.gained_s)
  return {
    ...head('step', o.name), result, facts: factsOf(o), mesh: meshOf(o), timeline: timelineOf(rows, step_s, streams), memory,
    links: o.tp * o.dp * o.stages > 1 ? linksOf(rows, step_s, o) : { edges_s: [], tiers: [], links: [] }, critical_path: path, blame,
  }
}

function factsOf({ layers, stages, tp, dp, microBatches, gpusPerNode }) {
  return [
    { name: 'model', facts: [['preset', 'hand-made'], ['layers', String(layers * stages)], ['hidden', '8192'], ['heads', '64, of 128; 8 for keys and values'], ['vocabulary', '128,256'],
      ['parameters', '70.6 billion']] },
    { name: 'parallelism', facts: [['tensor', `${tp}, with sequence parallelism`], ['pipeline', String(stages)], ['data', String(dp)], ['ZeRO', '1']] },
    { name: 'training', facts: [['sequence', '8,192'], ['micro-batches', String(microBatches)], ['global batch', String(microBatches * dp)], ['precision', 'bf16'],
      ['schedule', '1f1b'], ['recompute', 'selective']] },
    { name: 'cluster', facts: [['GPUs', `${tp * dp * stages} × h100-sxm-80gb`], ['node', `${gpusPerNode} GPUs, NVSwitches, 8 NICs`], ['fabric', 'fat tree of 3 tiers, rail-optimised'],
      ['routing', 'adaptive']] },
  ]
}

/// Large as those that are to be read: 16 stages.
export const large = () => step({ name: 'hand-made-405b-16k', stages: 16, microBatches: 32, layers: 2, dp: 128, perMicroBatch: 2.1e9,
  slow: stage => stage === 0 ? 1.04 : stage === 15 ? 1.08 : 1 })

export const tooLarge = () => step({ name: 'hand-made-too-large', stages: 4, perMicroBatch: 24e9,
  warnings: ['training.recompute is none: activations of every layer are kept', 'cluster.nic_gbps is assumed; the preset names no source'] })

export const alone = () => step({ name: 'hand-made-one-gpu', stages: 1, tp: 1, dp: 1, microBatches: 4, layers: 4, perMicroBatch: 3e9, gpu_bytes: 84.9e9 })

/// A CrosscheckReport.
export function crosscheck() {
  const next = random(11)
  const made = step({ name: 'hand-made-tiny', stages: 2, microBatches: 4, layers: 2, tp: 2, dp: 2, perMicroBatch: 1e9 })
  const names = ['gemm', 'attention', 'attention_backward', 'norm', 'activation', 'adam', 'all_gather (tp)', 'reduce_scatter (tp)', 'send (pp)', 'reduce_scatter (dp)']
  const size = [4e-4, 9e-4, 1.9e-3, 5e-5, 1.5e-4, 1.2e-3, 3e-4, 3e-4, 6e-5, 3e-3]
  const bias = [0.97, 1.06, 1.02, 0.81, 0.9, 1.3, 0.72, 0.78, 0.55, 1.12]
  const tasks = { kind: [], simulated_s: [], measured_s: [], kinds: names }
  for (let at = 0; at < 2400; ++at) {
    const kind = Math.floor(next() ** 1.6 * names.length)
    const measured = size[kind] * (0.5 + next()) * (1 + 0.2 * (next() - 0.5))
    tasks.kind.push(kind)
    tasks.measured_s.push(measured)
    tasks.simulated_s.push(measured * bias[kind] * Math.exp(0.35 * (next() - 0.5)))
  }
  const error = (simulated_s, measured_s) => ({ simulated_s, measured_s, error: measured_s > 0 ? simulated_s / measured_s - 1 : null })
  const all = sum(tasks.measured_s)
  const kinds = names.map((kind, of) => {
    const own = tasks.kind.flatMap((one, at) => one === of ? [at] : [])
    const measured = sum(own.map(at => tasks.measured_s[at]))
    return { kind, count: own.length, share: measured / all, ...error(sum(own.map(at => tasks.simulated_s[at])), measured) }
  }).sort((a, b) => b.measured_s - a.measured_s)
  kinds.push({ kind: 'fill', count: 3, share: 0, ...error(2e-6, 0) })
  const worst = tasks.kind.map((_, at) => at).sort((a, b) =>
    Math.abs(tasks.simulated_s[b] - tasks.measured_s[b]) - Math.abs(tasks.simulated_s[a] - tasks.measured_s[a])).slice(0, 10)
    .map(id => ({ task: `${names[tasks.kind[id]]}, layer ${id % 4}`, id, rank: id % 8, ...error(tasks.simulated_s[id], tasks.measured_s[id]) }))
  const overlap = ['tp', 'dp', 'pp send forward'].map((stream, at) => ({ stream, ranks: 8,
    simulated: { busy_s: 0.03 * (at + 1), covered_s: 0.01 * at }, measured: { busy_s: 0.036 * (at + 1), covered_s: 0.008 * at } }))
  return {
    ...head('crosscheck', 'hand-made-tiny'), command: 'tandem crosscheck scenarios/tiny-host.yaml --backend host --report crosscheck.html',
    result: { ...made.result, run: { ...made.result.run, backend: 'host', folded: false },
      crosscheck: { step: error(made.result.step_time_s * 0.94, made.result.step_time_s), kinds, overlap, worst,
        memory: { simulated_bytes: made.result.memory.peak_bytes, executed_bytes: made.result.memory.peak_bytes * 1.002, measured_bytes: null },
        ranks: Array.from({ length: 8 }, (_, rank) => ({ rank, tasks: 512 + rank % 2, same_order: rank !== 5 })) } },
    facts: made.facts, tasks, simulated: step({ name: 'x', stages: 2, microBatches: 4, layers: 2, tp: 2, dp: 2, slow: () => 0.94 }).timeline, measured: made.timeline,
  }
}

/// A StudyReport over GPUs: one point does not fit, one is refused, one failed.
export function study() {
  const gpus = [1024, 2048, 4096, 8192, 16384, 32768]
  const recompute = ['none', 'selective', 'full']
  const base = step()
  const points = gpus.flatMap((count, i) => recompute.map((name, j) => {
    const parameters = { 'parallelism.dp': count / 128, 'training.recompute': name }
    if (name === 'none' && count === 32768) return { parameters, status: 'refused', sentence: 'study.yaml:7:3: training.global_batch 4096 is not a multiple of parallelism.dp 256 × micro-batch 24', result: null }
    if (name === 'full' && count === 2048) return { parameters, status: 'failed', sentence: 'the point was killed by signal 9', result: null }
    const exposed = byAxis({ tp: base.result.time_s.exposed.tp, dp: base.result.time_s.exposed.dp * 1.5 ** i, pp: 1e-3 * (i + 1) })
    const compute = base.result.time_s.compute * (1 + [0, 0.04, 0.3][j])
    const bubble = base.result.time_s.bubble * (1 + i / 2)
    const optimizer = base.result.time_s.optimizer
    const step_time_s = compute + sum(Object.values(exposed)) + bubble + optimizer
    const mfu = 0.62 * base.result.time_s.compute / step_time_s
    const peak_bytes = [97e9, 61e9, 34e9][j] - i * 3e9
    const fits = peak_bytes <= 84.9e9
    const result = { ...base.result, gpus: count, step_time_s, time_s: { compute, exposed, bubble, optimizer }, mfu, hfu: mfu * (1 + [0, 0.04, 0.3][j]), bubble_fraction: bubble / step_time_s,
      tokens_per_s_per_gpu: 4194304 / 512 / step_time_s, model_tflops_per_gpu: mfu * 989, memory: { ...base.result.memory, peak_bytes, fits } }
    return fits ? { parameters, status: 'done', sentence: '', result }
      : { parameters, status: 'oom', sentence: `stage 0 needs ${(peak_bytes / 1e9).toFixed(1)} GB of 84.9 GB`, result }
  }))
  return { ...head('study', 'weak scaling by hand'), command: 'tandem report study.sqlite --out study.html',
    parameters: [{ name: 'parallelism.dp', values: gpus.map(count => count / 128) }, { name: 'training.recompute', values: recompute }], points }
}

/// Over a parameter that is not GPUs, with words and two further parameters.
export function studyOfOrders() {
  const base = step()
  const parameters = [{ name: 'parallelism.order', values: ['tp-cp-ep-dp-pp', 'tp-pp-dp', 'dp-tp-pp'] }, { name: 'cluster.fabric.oversubscription', values: [1, 4] },
    { name: 'parallelism.sp', values: [true, false] }]
  const next = random(3)
  const points = parameters[0].values.flatMap(order => parameters[1].values.flatMap(by => parameters[2].values.map(sp => {
    const factor = 1 + 0.3 * next()
    const time_s = { ...base.result.time_s, bubble: base.result.time_s.bubble * factor }
    const step_time_s = base.result.step_time_s + time_s.bubble - base.result.time_s.bubble
    return { parameters: { 'parallelism.order': order, 'cluster.fabric.oversubscription': by, 'parallelism.sp': sp }, status: 'done', sentence: '',
      result: { ...base.result, time_s, step_time_s, mfu: base.result.mfu * base.result.step_time_s / step_time_s } }
  })))
  return { ...head('study', 'the order of axes by hand'), parameters, points }
}

export function studyThatFailed() {
  return { ...head('study', 'nothing works'), parameters: [{ name: 'parallelism.tp', values: [3, 5] }],
    points: [3, 5].map(tp => ({ parameters: { 'parallelism.tp': tp }, status: 'refused', sentence: `parallelism.tp ${tp} does not divide the 64 heads`, result: null })) }
}

/// A DiffReport of two of the steps above.
export function diff() {
  const a = step()
  const b = step({ name: 'hand-made-70b-faster', slow: () => 0.98, dp: 16, perMicroBatch: 3.4e9, microBatches: 12 })
  const named = (before, after) => [...new Set([...Object.keys(before), ...Object.keys(after)])].map(name => ({ name, a_s: before[name] ?? null, b_s: after[name] ?? null }))
  const flat = ({ compute, exposed, bubble, optimizer }) =>
    ({ compute, ...Object.fromEntries(axes.map(axis => [`exposed ${axis}`, exposed[axis]])), bubble, optimizer })
  const kinds = result => Object.fromEntries(result.kinds.map(kind => [kind.name.includes('(') ? kind.name : `${kind.name} ${kind.phase}`, kind.time_s]))
  const kindsOfB = kinds(b.result)
  delete kindsOfB['attention recompute']
  kindsOfB['cast forward'] = 4e-3
  const parts = ({ stage, ranks, exposed, ...times }) => ({ ...times, ...Object.fromEntries(axes.map(axis => [`exposed ${axis}`, exposed[axis]])) })
  return {
    ...head('diff', 'hand-made-70b against hand-made-70b-faster'), command: 'tandem diff a.json b.json --report diff.html',
    a: { name: a.title, step_time_s: a.result.step_time_s }, b: { name: b.title, step_time_s: b.result.step_time_s },
    parts: named(flat(a.result.time_s), flat(b.result.time_s)), kinds: named(kinds(a.result), kindsOfB),
    axes: named(a.result.time_s.exposed, b.result.time_s.exposed),
    stages: a.result.stages_s.map((stage, at) => ({ stage: at, parts: named(parts(stage), parts(b.result.stages_s[at])) })),
    memory: a.memory.map(({ stage, peak_bytes }, at) => ({ stage, a_bytes: peak_bytes, b_bytes: b.memory[at].peak_bytes })),
  }
}

/// A FailureReport.
export function failure() {
  return { ...head('failure', 'broken'), sentence: 'broken.yaml:4:16: parallelism.tp: 12 does not divide the 64 attention heads; the nearest that does is 16\n  tp: 12\n      ^~',
    exit_code: 2, facts: factsOf(defaults).slice(0, 2) }
}

/// Markup in names must stay text.
export function hostile() {
  const report = step({ name: '</script><img src=x onerror=alert(1)> & "quotes"' })
  report.result.warnings = ['<b>bold</b>']
  return report
}

export const all = { step, large, tooLarge, alone, crosscheck, study, studyOfOrders, studyThatFailed, diff, failure, hostile }

/// The page with a report in it, as the binary fills it.
export function filled(page, report) {
  const empty = '<script type="application/json" id="report">{}</script>'
  const at = page.indexOf(empty)
  if (at < 0 || page.indexOf(empty, at + 1) >= 0) throw new Error('the page has not exactly one place for the report')
  return page.slice(0, at) + empty.replace('{}', () => JSON.stringify(report).replaceAll('</', '<\\/')) + page.slice(at + empty.length)
}
