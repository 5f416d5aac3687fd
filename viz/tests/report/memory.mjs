// Memory over time against its JSON.
import { isEmpty, marks, valueAt } from './browser.mjs'
import { checkBars } from './common.mjs'

export async function checkMemoryOverTime({ page }, { memory, result }, expect) {
  if (result.memory.device_bytes !== undefined) {
    const said = await page.locator('#memory p[data-device]').evaluate(words => ({ ...words.dataset }))
    expect.same(
      'what PyTorch and the driver count',
      [said.allocated, said.reserved, said.device].map(Number),
      [result.memory.allocated_bytes, result.memory.reserved_bytes, result.memory.device_bytes]
    )
  }
  if (memory.length === 0) return expect.ok('memory over time is said to be missing', await isEmpty(page, 'memory'))
  const small = await marks(page, 'memory-small')
  expect.same(
    'a small chart for each stage',
    new Set(small.map(({ stage }) => stage)).size,
    memory.length > 1 ? memory.length : 0
  )
  for (const stage of memory) {
    if (memory.length > 1) await page.click(`.multiple[data-stage="${stage.stage}"]`)
    const layers = await marks(page, 'memory')
    checkLayers(layers, stage, expect)
    if (memory.length > 1)
      checkLayers(
        small.filter(mark => Number(mark.stage) === stage.stage),
        stage,
        expect
      )
    const held = await marks(page, 'memory-largest')
    if (stage.largest.length > 0)
      checkBars(
        'memory-largest',
        held,
        stage.largest.map(({ bytes }) => bytes),
        expect
      )
    const words = await page.evaluate(() => document.querySelector('svg[data-chart=memory]').textContent)
    expect.ok(`the peak of stage ${stage.stage} is named`, words.includes(stage.peak_task), words)
  }
  const line = await page.evaluate(() => document.querySelector('svg[data-chart=memory] .capacity')?.dataset.value ?? null)
  const close = memory[0].gpu_bytes <= 4 * Math.max(...memory.map(({ peak_bytes }) => peak_bytes))
  expect.same('the capacity is a line where it is near', line, close ? String(memory.at(-1).gpu_bytes) : null)
  expect.ok('no step is longer than the chart', result.step_time_s >= Math.max(...memory.flatMap(({ t_s }) => t_s)))
}

function checkLayers(layers, stage, expect) {
  const most = list => list.reduce((a, b) => Math.max(a, b), 0)
  const of = what => layers.find(mark => mark.what === what)
  for (const what of ['parameters', 'gradients', 'optimizer'])
    expect.same(`${what} of stage ${stage.stage}`, Number(of(what).most), stage[what])
  for (const what of ['activations', 'buffers'])
    expect.same(`most ${what} of stage ${stage.stage}`, Number(of(what).most), most(stage[what]))
  expect.same(`points of stage ${stage.stage}`, Number(of('activations').points), stage.t_s.length)
  // The highest point of the topmost layer is the most that is held at once.
  const ys = of('buffers')
    .d.match(/-?[\d.]+,-?[\d.]+/g)
    .map(point => Number(point.split(',')[1]))
  const stay = stage.parameters + stage.gradients + stage.optimizer
  const together = most(stage.t_s.map((_, at) => stay + stage.activations[at] + stage.buffers[at]))
  expect.near(`the top of stage ${stage.stage}`, valueAt(of('buffers').chart.yScale, Math.min(...ys)), together, together / 200)
  const { value, at, cx, cy, chart } = of('peak')
  expect.same(`the peak of stage ${stage.stage}`, [Number(value), Number(at)], [stage.peak_bytes, stage.peak_at_s])
  expect.near(`where the peak of stage ${stage.stage} is`, valueAt(chart.yScale, cy), stage.peak_bytes, stage.peak_bytes / 1e6)
  expect.near(
    `when the peak of stage ${stage.stage} is`,
    valueAt(chart.xScale, cx),
    stage.peak_at_s,
    1e-6 * (1 + stage.peak_at_s)
  )
}
