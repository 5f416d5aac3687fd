// A page of predictions beside measured runs against its JSON.
import { isEmpty, marks, rows, valueAt } from './browser.mjs'
import { checkFigure, checkSorting } from './common.mjs'

const number = cell => (cell === null ? null : Number(cell))

export async function checkValidation(opened, { rows: runs, strata, memory, ratios, unsimulated }, expect) {
  const { page } = opened
  await checkFigure(opened, 'simulated', runs.length - unsimulated.length, expect)
  const shown = await rows(page, 'runs')
  expect.same(
    'the runs',
    shown.map(({ run, cells }) => [run, ...cells.slice(3, 8).map(number)]).sort(),
    runs
      .map(run => [run.id, run.measured_step_time_s, run.predicted_step_time_s, run.low_s, run.high_s, run.error])
      .sort()
  )
  await checkSorting(opened, 'runs', expect)
  expect.same(
    'what was not simulated, and why',
    (await rows(page, 'unsimulated')).map(({ run, cells }) => [run, cells[1]]),
    unsimulated.map(({ id, reason }) => [id, reason])
  )
  expect.same(
    'the peaks of memory',
    (await rows(page, 'memory-errors')).map(({ run, cells }) => [run, ...cells.slice(1, 4).map(number)]),
    memory.rows.map(row => [row.id, row.measured_bytes, row.predicted_bytes, row.error])
  )
  const scored = runs.filter(({ error }) => error !== null)
  if (scored.length === 0) {
    expect.ok('that there are no ratios is said', await isEmpty(page, 'ratios'))
    return expect.ok('that there are no dots is said', await isEmpty(page, 'run-scatter'))
  }
  const total = strata.find(({ set, by }) => set === 'all' && by === 'all')
  await checkFigure(opened, 'median', total.median_abs_error, expect)
  await checkFigure(opened, 'p90', total.p90_abs_error, expect)
  await checkFigure(opened, 'bias', total.bias, expect)
  await checkFigure(opened, 'coverage', total.coverage, expect)
  expect.same(
    'the strata',
    (await rows(page, 'strata')).map(({ set, name, cells }) => [set, name, ...cells.slice(-5).map(number)]),
    strata
      .filter(({ by }) => by !== 'source')
      .map(row => [row.set, row.name, row.median_abs_error, row.mean_abs_error, row.p90_abs_error, row.bias, row.coverage])
  )
  if (ratios.axes.length > 0) {
    expect.same(
      'the ratios',
      (await rows(page, 'ratio-axes')).map(({ axis, cells }) => [axis, ...cells.slice(1).map(number)]),
      ratios.axes.map(row => [row.axis, row.pairs, row.sources, row.median_abs_error, row.p90_abs_error])
    )
  }
  const sources = strata.filter(({ set, by }) => set === 'all' && by === 'source')
  const bars = await marks(page, 'source-errors')
  expect.same('a bar for each source', bars.map(({ name }) => name).sort(), sources.map(({ name }) => name).sort())
  for (const { name, value, x, width, chart } of bars) {
    const { bias } = sources.find(source => source.name === name)
    expect.same(`the bias of ${name}`, Number(value), 1 + bias)
    expect.near(`where the bar of ${name} ends`, valueAt(chart.xScale, bias < 0 ? x : x + width), 1 + bias, 0.01)
  }
  for (const dots of await marks(page, 'run-scatter')) {
    const own = scored.filter(({ source }) => source === dots.name)
    const places = [...dots.d.matchAll(/M(-?[\d.]+) (-?[\d.]+)/g)].map(([, x, y]) => [
      valueAt(dots.chart.xScale, Number(x)),
      valueAt(dots.chart.yScale, Number(y)),
    ])
    expect.same(`the runs of ${dots.name}`, places.length, own.length)
    const right = places.every(
      ([measured, predicted], at) =>
        Math.abs(measured / own[at].measured_step_time_s - 1) < 0.002 &&
        Math.abs(predicted / own[at].predicted_step_time_s - 1) < 0.002
    )
    expect.ok(`where the dots of ${dots.name} are`, right)
  }
}
