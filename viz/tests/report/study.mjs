// A page of a study against its JSON.
import { isEmpty, marks, rows, valueAt } from './browser.mjs'
import { checkFigure, checkSorting } from './common.mjs'

const measures = {
  mfu: result => result.mfu,
  'step-time': result => result.step_time_s,
  tokens: result => result.tokens_per_s_per_gpu * result.gpus,
}

export async function checkStudy(opened, { parameters, points }, expect) {
  const { page } = opened
  await checkFigure(opened, 'points', points.length, expect)
  const table = await rows(page, 'points')
  expect.same(
    'the points and how they ended',
    table.map(row => [Number(row.point), row.status]),
    points.map(({ status }, at) => [at, status])
  )
  points.forEach(({ parameters: own, sentence, result }, at) => {
    const { cells, text } = table[at]
    expect.same(
      `the parameters of point ${at}`,
      cells.slice(0, parameters.length),
      parameters.map(({ name }) =>
        typeof own[name] === 'boolean' ? String(Number(own[name])) : own[name] === undefined ? null : String(own[name])
      )
    )
    const numbers = cells.slice(parameters.length + 1, parameters.length + 4)
    expect.same(
      `the result of point ${at}`,
      numbers,
      result ? [result.gpus, result.step_time_s, result.mfu].map(String) : [null, null, null]
    )
    expect.ok(`why point ${at} is not done`, text.replace(/\s+/g, ' ').includes(sentence.trim().replace(/\s+/g, ' ')), text)
  })
  await checkSorting(opened, 'points', expect)

  const known = points.filter(({ result }) => result)
  const best = Math.max(0, ...points.filter(({ status }) => status === 'done').map(({ result }) => result.mfu))
  if (best > 0) await checkFigure(opened, 'best', best, expect)
  if (known.length === 0) {
    expect.ok('that there are no curves is said', await isEmpty(page, 'curves'))
    return expect.ok('that there are no parts is said', await isEmpty(page, 'study-parts'))
  }
  for (const [id, of] of Object.entries(measures)) {
    const dots = await marks(page, `curves-${id}`)
    const drawn = dots.filter(({ value }) => value !== undefined)
    expect.sameNumbers(
      `${id} of each point`,
      drawn.map(({ value }) => value),
      known.map(({ result }) => of(result))
    )
    for (const { value, cy, chart, x } of drawn)
      expect.near(`${id} at ${x} is where it belongs`, valueAt(chart.yScale, cy), Number(value), 1e-6 * Math.abs(value))
    expect.same(
      `${id}: what does not fit is a ring`,
      dots.filter(({ status }) => status === 'oom').length,
      known.filter(({ status }) => status === 'oom').length
    )
    const without = points.length - known.length
    const named = await page.evaluate(() => document.querySelectorAll('#curves .warnings li').length)
    expect.same(
      `${id}: what has no result is a cross, or named below`,
      dots.filter(({ tag }) => tag === 'path').length + named,
      without
    )
  }
  const columns = (await marks(page, 'study-parts')).filter(({ part }) => part !== undefined)
  const parts = known
    .flatMap(({ result: { time_s } }) => [time_s.compute, ...Object.values(time_s.exposed), time_s.bubble, time_s.optimizer])
    .filter(value => value > 0)
  expect.sameNumbers(
    'the parts of each point',
    columns.map(({ value }) => value),
    parts
  )
  for (const { y, height, share, part, chart } of columns) {
    expect.near(`the height of ${part}`, valueAt(chart.yScale, y) - valueAt(chart.yScale, y + height), Number(share), 1e-6)
  }
}
