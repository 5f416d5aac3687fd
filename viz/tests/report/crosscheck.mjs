// A page of a cross-check against its JSON.
import { isEmpty, marks, rows, valueAt } from './browser.mjs'
import { checkFacts, checkFigure, checkSorting } from './common.mjs'
import { checkResult } from './result.mjs'
import { checkTimelines } from './step.mjs'

export async function checkCrosscheck(opened, report, expect) {
  const { page } = opened
  const { crosscheck } = report.result
  await checkResult(opened, report.result, expect)
  await checkFacts(opened, report.facts, expect)
  if (crosscheck.step.error !== null) await checkFigure(opened, 'error', crosscheck.step.error, expect)
  await checkFigure(opened, 'simulated', crosscheck.step.simulated_s, expect)
  await checkFigure(opened, 'measured', crosscheck.step.measured_s, expect)

  const bars = await marks(page, 'kind-errors')
  const known = crosscheck.kinds.filter(({ error }) => error !== null && error > -1)
  expect.same('an error for each kind', bars.map(({ name }) => name).sort(), known.map(({ kind }) => kind).sort())
  for (const { name, value, x, width, chart } of bars) {
    const { error } = known.find(({ kind }) => kind === name)
    expect.same(`the error of ${name}`, Number(value), error + 1)
    const end = valueAt(chart.xScale, error < 0 ? x : x + width)
    expect.near(`where the bar of ${name} ends`, end, error + 1, 0.01 * (error + 1))
  }
  await checkScatter(opened, report.tasks, expect)
  await checkTimelines(opened, [report.simulated, report.measured], expect)

  const table = await rows(page, 'kind-errors')
  expect.same(
    'the kinds in numbers',
    table.map(({ cells }) => cells.slice(1, 4).map(Number)).sort(),
    crosscheck.kinds.map(({ count, simulated_s, measured_s }) => [count, simulated_s, measured_s]).sort()
  )
  if (crosscheck.worst.length > 0) {
    const worst = await rows(page, 'worst')
    expect.same(
      'the worst tasks',
      worst.map(({ cells }) => cells.slice(0, 5)),
      crosscheck.worst.map(task => [task.task, task.rank, task.id, task.simulated_s, task.measured_s].map(String))
    )
    await checkSorting(opened, 'worst', expect)
  }
  if (crosscheck.overlap.length > 0) {
    const overlap = await rows(page, 'overlap')
    expect.same(
      'the overlap',
      overlap.map(({ cells }) => [cells[0], ...cells.slice(1, 4).map(Number)]),
      crosscheck.overlap.map(({ stream, ranks, simulated, measured }) => [stream, ranks, simulated.busy_s, measured.busy_s])
    )
  }
  const order = await rows(page, 'ranks')
  expect.same(
    'the ranks',
    order.map(({ cells }) => [Number(cells[0]), cells[2]]),
    crosscheck.ranks.map(({ rank, same_order }) => [rank, same_order ? 'yes' : 'no'])
  )
}

/// Every dot of the scatter, read back from the drawing, is at its task's times.
async function checkScatter({ page }, tasks, expect) {
  if (tasks.kind.length === 0) return expect.ok('that there are no tasks is said', await isEmpty(page, 'task-scatter'))
  const paths = await marks(page, 'task-scatter')
  tasks.kinds.forEach((name, kind) => {
    const path = paths.find(mark => mark.name === name)
    const own = tasks.kind.flatMap((of, at) => (of === kind ? [[tasks.measured_s[at], tasks.simulated_s[at]]] : []))
    expect.same(`dots of ${name}`, Number(path.count), own.length)
    const positive = own.filter(([measured, simulated]) => measured > 0 && simulated > 0)
    const dots = [...path.d.matchAll(/M(-?[\d.]+) (-?[\d.]+)/g)].map(([, x, y]) => [
      valueAt(path.chart.xScale, Number(x)),
      valueAt(path.chart.yScale, Number(y)),
    ])
    expect.same(`dots drawn of ${name}`, dots.length, positive.length)
    const right = dots.every(
      ([measured, simulated], at) =>
        Math.abs(measured / positive[at][0] - 1) < 0.002 && Math.abs(simulated / positive[at][1] - 1) < 0.002
    )
    expect.ok(`where the dots of ${name} are`, right)
  })
  const buttons = page.locator('.kinds button')
  await buttons.first().click()
  expect.same(
    'a kind alone',
    await page.evaluate(() => document.querySelectorAll('[data-chart=task-scatter] .dots:not(.faded)').length),
    1
  )
  await buttons.first().click()
  expect.same(
    'all kinds again',
    await page.evaluate(() => document.querySelectorAll('[data-chart=task-scatter] .faded').length),
    0
  )
}
