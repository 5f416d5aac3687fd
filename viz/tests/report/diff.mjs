// A page of a difference against its JSON.
import { isEmpty, marks, rows } from './browser.mjs'
import { checkBars, checkFigure } from './common.mjs'

const delta = ({ a_s, b_s }) => {
  const [a, b] = [a_s ?? 0, b_s ?? 0]
  return Math.abs(b - a) <= 1e-9 * Math.max(a, b) ? 0 : b - a
}

export async function checkDiff(opened, { a, b, parts, kinds, axes, stages, memory }, expect) {
  const { page } = opened
  await checkFigure(opened, 'change', b.step_time_s - a.step_time_s, expect)
  checkBars('step-times', await marks(page, 'step-times'), [a.step_time_s, b.step_time_s], expect)
  for (const [id, all] of Object.entries({ 'diff-parts': parts, 'diff-kinds': kinds, 'diff-axes': axes })) {
    if (all.length === 0) continue
    const table = await rows(page, id)
    const text = value => (value === null ? null : String(value))
    if (table.length > 0) {
      expect.same(
        `${id} in numbers`,
        table.map(row => [row.name, row.cells[1], row.cells[2]]),
        all.map(({ name, a_s, b_s }) => [name, text(a_s), text(b_s)])
      )
    }
    const changed = all.filter(row => Math.abs(delta(row)) > 1e-9 * a.step_time_s || (row.a_s === null) !== (row.b_s === null))
    if (changed.length === 0) {
      expect.ok(`${id}: that nothing changed is said`, await isEmpty(page, id))
      continue
    }
    const bars = await marks(page, id)
    checkBars(id, bars, changed.map(delta), expect)
    expect.ok(
      `${id}: most changed comes first`,
      bars.every(({ value }, at) => at === 0 || Math.abs(bars[at - 1].value) >= Math.abs(value))
    )
    const zero = bars
      .map(({ value, box }) => ({ edge: Number(value) < 0 ? box.x + box.width : box.x, width: box.width }))
      .filter(({ width }) => width > 1.5)
    expect.ok(
      `${id}: bars start at zero`,
      zero.every(({ edge }) => Math.abs(edge - zero[0].edge) < 1),
      zero.map(({ edge }) => edge).join(' ')
    )
  }
  const present = stages.filter(({ parts }) => parts.some(({ b_s }) => b_s !== null) && parts.some(({ a_s }) => a_s !== null))
  const changed = name => present.some(stage => stage.parts.some(part => part.name === name && delta(part) !== 0))
  const names = [...new Set(stages.flatMap(stage => stage.parts.map(({ name }) => name)))].filter(changed)
  const table = (await rows(page, 'diff-stages')).filter(row => present.some(({ stage }) => stage === Number(row.stage)))
  if (names.length > 0) {
    const shown = table.map(({ cells }) => cells.slice(-names.length).map(cell => (cell === null ? null : Number(cell))))
    const part = (stage, name) => stage.parts.find(one => one.name === name)
    const expected = present.map(stage => names.map(name => (part(stage, name) ? delta(part(stage, name)) : null)))
    expect.same('the stages', shown, expected)
  }
  const inNumbers = await rows(page, 'diff-memory')
  expect.same(
    'memory in numbers',
    inNumbers.map(({ cells }) => cells.slice(0, 3).map(cell => (cell === null ? null : Number(cell)))),
    memory.map(({ stage, a_bytes, b_bytes }) => [stage, a_bytes, b_bytes])
  )
  if (memory.some(({ a_bytes, b_bytes }) => a_bytes !== b_bytes)) {
    checkBars(
      'diff-memory',
      await marks(page, 'diff-memory'),
      memory.map(({ a_bytes, b_bytes }) => (b_bytes ?? 0) - (a_bytes ?? 0)),
      expect
    )
  }
}
