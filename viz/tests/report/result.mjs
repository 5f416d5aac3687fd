// What pages of a step and of a cross-check share.
import { marks, rows, valueAt } from './browser.mjs'
import { checkBars, checkSorting } from './common.mjs'

const axes = ['tp', 'cp', 'ep', 'pp', 'dp']

export async function checkResult(opened, result, expect) {
  const { page } = opened
  const banner = await page.evaluate(() => document.querySelector('.banner')?.innerText ?? '')
  expect.same('a banner exactly if it does not fit', /does not fit in memory/.test(banner), !result.memory.fits)
  const warnings = await page.evaluate(() =>
    [...document.querySelectorAll('main > .warnings li')].map(item => item.lastChild.textContent)
  )
  expect.same('the warnings', warnings, result.warnings)

  const parts = [
    result.time_s.compute,
    ...axes.map(axis => result.time_s.exposed[axis] ?? 0),
    result.time_s.bubble,
    result.time_s.optimizer,
  ].filter(value => value > 0)
  checkBars('step-parts', await marks(page, 'step-parts'), parts, expect)

  const stages = await marks(page, 'stage-parts')
  for (const { stage, ranks, exposed, ...times } of result.stages_s) {
    const own = stages.filter(mark => Number(mark.stage) === stage)
    const expected = [...Object.values(times), ...axes.map(axis => exposed[axis] ?? 0)].filter(value => value > 0)
    expect.sameNumbers(
      `the parts of stage ${stage}`,
      own.map(({ value }) => value),
      expected
    )
    for (const { part, value, x, width, chart } of own) {
      expect.near(
        `the length of ${part} of stage ${stage}`,
        valueAt(chart.xScale, x + width) - valueAt(chart.xScale, x),
        Number(value),
        result.step_time_s / 1e6
      )
    }
  }

  const kinds = await rows(page, 'kinds')
  const key = (name, phase, value) => `${name}|${phase}|${value}`
  expect.same(
    'the kinds',
    kinds.map(row => key(row.kind, row.phase, Number(row.value))).sort(),
    result.kinds.map(({ name, phase, time_s }) => key(name, phase, time_s)).sort()
  )
  if (result.kinds.length > 0) await checkSorting(opened, 'kinds', expect)
  const memory = await rows(page, 'memory')
  expect.same(
    'the memory of stages',
    memory.map(row => row.cells.slice(1, 7).map(Number)),
    result.memory.stages.map(stage => [
      stage.parameters,
      stage.gradients,
      stage.optimizer,
      stage.activations,
      stage.buffers,
      stage.peak_bytes,
    ])
  )
}
