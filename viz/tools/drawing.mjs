// The drawing of a pipeline: every stage over the whole step, then one stage's streams over a few milliseconds.
import { blocksOf } from './blocks.mjs'

// Okabe and Ito's palette, which colour-blind readers can tell apart; a model chunk further on is lighter.
const colours = {
  forward: '#0072B2',
  'backward-input': '#E69F00',
  'backward-weight': '#009E73',
  recompute: '#CC79A7',
  optimizer: '#555555',
}
const ink = '#222222'
const quiet = '#6b6b6b'
const idle = '#eeeeee'

export const width = 1400
const left = 160
const right = 24
const plotWidth = width - left - right
const stageHeight = 46
const streamHeight = 30
const rowGap = 8
const kernelsShown = 20  // of the backward pass in the close-up
const smallestLabel_px = 13  // a narrower block goes without its number

const escaped = text => String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

function text(x, y, content, { size = 14, anchor = 'start', fill = ink, weight = 400, mono = false } = {}) {
  const family = mono ? 'ui-monospace, DejaVu Sans Mono, monospace' : 'Inter, Helvetica, DejaVu Sans, sans-serif'
  return `<text x="${x}" y="${y}" font-family="${family}" font-size="${size}" text-anchor="${anchor}" fill="${fill}" ` +
    `font-weight="${weight}">${escaped(content)}</text>`
}

function rect(x, y, w, h, fill, extra = '') {
  return `<rect x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${w.toFixed(2)}" height="${h.toFixed(2)}" fill="${fill}" ${extra}/>`
}

/// Mixed with white: chunk 0 keeps its colour, the last of `chunks` has 55 % of it.
function shade(colour, chunk, chunks) {
  const keep = chunks > 1 ? 1 - 0.45 * (chunk ?? 0) / (chunks - 1) : 1
  const parts = [1, 3, 5].map(at => Math.round(255 - keep * (255 - parseInt(colour.slice(at, at + 2), 16))))
  return `rgb(${parts.join(',')})`
}

/// 1, 2 or 5 times a power of ten, for at most twelve ticks.
function tickStep(span) {
  const power = 10 ** Math.floor(Math.log10(span / 12))
  return [1, 2, 5, 10].map(factor => factor * power).find(step => span / step <= 12)
}

function axis(begin_ms, end_ms, top, bottom) {
  const x = ms => left + (ms - begin_ms) / (end_ms - begin_ms) * plotWidth
  const step = tickStep(end_ms - begin_ms)
  const out = []
  for (let ms = Math.ceil(begin_ms / step) * step; ms <= end_ms; ms += step) {
    out.push(`<line x1="${x(ms)}" x2="${x(ms)}" y1="${top}" y2="${bottom + 5}" stroke="#cccccc"/>`)
    out.push(text(x(ms), bottom + 20, `${Math.round(ms * 1000) / 1000} ms`, { size: 12, anchor: 'middle', fill: quiet }))
  }
  return { x, lines: out.join('') }
}

function legend(entries, y) {
  let x = left
  return entries.map(([colour, label]) => {
    const entry = rect(x, y - 12, 16, 16, colour, 'rx="2"') + text(x + 22, y + 1, label, { size: 13 })
    x += 44 + 6.2 * label.length
    return entry
  }).join('')
}

/// A backward block carries the weight gradient as a band at its foot, as high as its share of the kernels' time.
function drawBlock(block, x, y, chunks) {
  const from = x(block.begin_ms)
  const w = Math.max(x(block.end_ms) - from - 0.6, 0.4)
  const head = colours[block.pass === 'backward' ? 'backward-input' : block.pass]
  const foot = stageHeight * block.weightShare
  const out = [rect(from, y, w, stageHeight - foot, shade(head, block.chunk, chunks))]
  if (foot > 0) out.push(rect(from, y + stageHeight - foot, w, foot, shade(colours['backward-weight'], block.chunk, chunks)))
  if (block.pass !== 'optimizer' && w >= smallestLabel_px) {
    const fill = block.pass === 'forward' && !block.chunk ? 'white' : ink
    out.push(text(from + w / 2, y + stageHeight / 2 - foot / 2 + 5, block.microBatch, { size: 13, anchor: 'middle', fill }))
  }
  return out.join('')
}

function drawStages(stages, chunks, top) {
  const end_ms = Math.max(...stages.flatMap(({ spans }) => spans.map(span => span.end_ms)))
  const bottom = top + stages.length * (stageHeight + rowGap)
  const { x, lines } = axis(0, end_ms, top, bottom)
  const rows = stages.map((stage, row) => {
    const y = top + row * (stageHeight + rowGap)
    return rect(left, y, plotWidth, stageHeight, idle) +
      text(left - 12, y + stageHeight / 2 + 5, `stage ${stage.stage}`, { anchor: 'end' }) +
      blocksOf(stage, end_ms / 400).map(block => drawBlock(block, x, y, chunks)).join('')
  })
  return { svg: lines + rows.join(''), bottom, x }
}

/// About a layer forward and a layer backward, around the first change from one to the other in the middle of the step.
function closeUp(stage) {
  const blocks = blocksOf(stage, Infinity)
  const middle_ms = blocks.at(-1).end_ms / 2
  const turn = blocks.find((block, i) => block.pass === 'backward' && blocks[i - 1]?.pass === 'forward' && block.begin_ms > middle_ms)
  const kernels = turn.spans.filter(({ stream }) => stream === 'compute').length
  const reach_ms = (turn.end_ms - turn.begin_ms) * Math.min(1, kernelsShown / kernels)
  return { begin_ms: turn.begin_ms - reach_ms / 2, end_ms: turn.begin_ms + reach_ms }
}

function drawStreams(stage, { begin_ms, end_ms }, top) {
  const spans = stage.spans.filter(span => span.end_ms > begin_ms && span.begin_ms < end_ms)
  const streams = [...new Set([...stage.streams].sort(([a], [b]) => a - b).map(([, name]) => name))]
    .filter(name => spans.some(({ stream }) => stream === name))
  const bottom = top + streams.length * (streamHeight + rowGap)
  const { x, lines } = axis(begin_ms, end_ms, top, bottom)
  const rows = streams.map((stream, row) => {
    const y = top + row * (streamHeight + rowGap)
    const drawn = spans.filter(span => span.stream === stream).map(span => {
      const from = Math.max(x(span.begin_ms), left)
      const w = Math.max(Math.min(x(span.end_ms), left + plotWidth) - from - 0.6, 0.4)
      const fits = w > 6.4 * span.name.length
      const fill = span.phase === 'forward' ? 'white' : ink
      return rect(from, y, w, streamHeight, colours[span.phase]) +
        (fits ? text(from + w / 2, y + streamHeight / 2 + 4, span.name, { size: 12, anchor: 'middle', fill }) : '')
    })
    return rect(left, y, plotWidth, streamHeight, idle) +
      text(left - 12, y + streamHeight / 2 + 5, stream, { size: 13, anchor: 'end' }) + drawn.join('')
  })
  return { svg: lines + rows.join(''), bottom }
}

export function draw(stages, { title, command }) {
  const spans = stages.flatMap(stage => stage.spans)
  const chunks = 1 + Math.max(...spans.map(({ chunk }) => chunk ?? 0))
  const shown = new Set(spans.map(({ phase }) => phase))
  const entries = Object.entries(colours).filter(([phase]) => shown.has(phase))
    .map(([phase, colour]) => [colour, { 'backward-input': 'backward: input gradient', 'backward-weight': 'backward: weight gradient',
      optimizer: 'optimizer' }[phase] ?? phase])
  entries.push([idle, 'waiting'])

  const whole = drawStages(stages, chunks, 124)
  const stage = stages[Math.min(1, stages.length - 1)]
  const window = closeUp(stage)
  const streamsTop = whole.bottom + 96
  const near = drawStreams(stage, window, streamsTop)
  const height = near.bottom + 44
  const numbers = `number: micro-batch${chunks > 1 ? '; shade: model chunk' : ''}`
  const marker = `<path d="M${whole.x(window.begin_ms)} ${whole.bottom} L${left} ${streamsTop - 6} H${left + plotWidth} ` +
    `L${whole.x(window.end_ms)} ${whole.bottom} Z" fill="#000000" fill-opacity="0.06"/>`
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">` +
    rect(0, 0, width, height, 'white') +
    text(left, 38, title, { size: 21, weight: 600 }) + text(left, 62, command, { size: 12.5, fill: quiet, mono: true }) +
    legend(entries, 96) + text(width - right, 97, numbers, { size: 13, anchor: 'end', fill: quiet }) +
    marker + whole.svg +
    text(left, streamsTop - 18, `The streams of stage ${stage.stage}, from ${window.begin_ms.toFixed(1)} to ${window.end_ms.toFixed(1)} ms`,
      { size: 15, weight: 600 }) +
    near.svg + '</svg>'
}
