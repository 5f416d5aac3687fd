// What a picture of a pipeline shows, out of a Chrome JSON trace written by `tandem --trace F.json`. Times are in milliseconds.

const passOf = {
  forward: 'forward',
  recompute: 'backward',
  'backward-input': 'backward',
  'backward-weight': 'backward',
  optimizer: 'optimizer',
}

/// The first process of every pipeline stage, with its kernels and collectives in the order they started.
export function stagesOf(trace) {
  const stages = new Map()
  for (const { ph, name, pid, args } of trace.traceEvents) {
    if (ph !== 'M' || name !== 'process_name') continue
    const stage = Number(args.name.match(/\bpp (\d+)/)?.[1] ?? 0)
    if (!stages.has(stage)) stages.set(stage, { stage, pid, streams: new Map(), spans: [] })
  }
  const byPid = new Map([...stages.values()].map(stage => [stage.pid, stage]))
  for (const event of trace.traceEvents) {
    const stage = byPid.get(event.pid)
    if (event.ph === 'M' && event.name === 'thread_name') stage?.streams.set(event.tid, event.args.name)
    if (event.ph !== 'X' || !stage) continue
    const { phase, micro_batch: microBatch, chunk } = event.args
    const begin_ms = event.ts / 1e3
    stage.spans.push({ stream: event.tid, name: event.name, begin_ms, end_ms: begin_ms + event.dur / 1e3, phase, microBatch, chunk })
  }
  for (const { streams, spans } of stages.values()) {
    spans.forEach(span => { span.stream = streams.get(span.stream) })
    spans.sort((a, b) => a.begin_ms - b.begin_ms)
  }
  return [...stages.values()].sort((a, b) => a.stage - b.stage)
}

/// One pass of one micro-batch through one model chunk: its kernels and the tensor-parallel collectives between them, which a wait
/// longer than `longestGap_ms` cuts in two; of the optimizer, what runs without any wait. `weightShare` is what the weight gradient
/// takes of the kernels' time.
export function blocksOf(stage, longestGap_ms) {
  const blocks = []
  for (const span of stage.spans.filter(({ stream }) => stream === 'compute' || stream === 'tp')) {
    const pass = passOf[span.phase]
    const last = blocks.at(-1)
    const same = last && last.pass === pass && last.microBatch === span.microBatch && last.chunk === span.chunk
    const gap_ms = pass === 'optimizer' ? 0 : longestGap_ms
    if (!same || span.begin_ms - last.end_ms > gap_ms) {
      blocks.push({ pass, microBatch: span.microBatch, chunk: span.chunk, begin_ms: span.begin_ms, end_ms: span.end_ms, spans: [] })
    }
    const block = blocks.at(-1)
    block.end_ms = Math.max(block.end_ms, span.end_ms)
    block.spans.push(span)
  }
  for (const block of blocks) {
    const kernels = block.spans.filter(({ stream }) => stream === 'compute')
    const weight = kernels.filter(({ phase }) => phase === 'backward-weight')
    block.weightShare = total_ms(weight) / (total_ms(kernels) || 1)
  }
  return blocks
}

export function total_ms(spans) {
  return spans.reduce((sum, { begin_ms, end_ms }) => sum + end_ms - begin_ms, 0)
}
