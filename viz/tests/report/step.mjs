// A page of one step against its JSON.
import { isEmpty, marks, rows, valueAt } from './browser.mjs'
import { checkBars, checkFacts, checkFigure } from './common.mjs'
import { panning } from '../frames.mjs'
import { checkMemoryOverTime } from './memory.mjs'
import { checkResult } from './result.mjs'

export async function checkStep(opened, report, expect) {
  await checkResult(opened, report.result, expect)
  await checkHeadline(opened, report, expect)
  await checkMemoryOverTime(opened, report, expect)
  await checkMetrics(opened, report.result, expect)
  await checkLinks(opened, report.links, expect)
  await checkMesh(opened, report.mesh, expect)
  await checkPath(opened, report, expect)
  await checkBlame(opened, report.blame, expect)
  await checkTimelines(opened, [report.timeline], expect)
  if (report.timeline.rows.length > 0) await checkPanning(opened, expect)
}

/// The middle third of the step is drawn in every frame while it pans.
async function checkPanning({ page }, expect) {
  const container = await page.$('[data-chart=timeline]')
  await container.scrollIntoViewIfNeeded()
  await container.evaluate(async element => {
    const timeline = await element.timeline
    const { start_s, end_s } = timeline.visible()
    timeline.show(start_s + (end_s - start_s) / 3, end_s - (end_s - start_s) / 3)
  })
  const { draws_ms } = await container.evaluate(panning, 60)
  expect.ok('draws every frame while it pans', draws_ms.length >= 58, draws_ms.length)
}

/// The page decodes as many tasks of every row as the JSON says, and shows the longest of the timelines from its beginning to its end.
export async function checkTimelines({ page }, timelines, expect) {
  const shown = await page.evaluate(async () => {
    const timeline = await document.querySelector('[data-chart=timeline]')?.timeline
    return timeline ? { tasks: timeline.tasks(), ...timeline.visible() } : null
  })
  const countIn = ({ tasks, repeated }, repeat) => tasks + (repeat ? repeat.times * (repeated[1] - repeated[0]) : 0)
  const tasks = timelines.map(({ rows, repeat }) =>
    rows.map(({ streams, mirrors }) => (rows[mirrors] ?? { streams }).streams.reduce((sum, stream) => sum + countIn(stream, repeat), 0)))
  if (tasks.flat().every(count => count === 0)) return expect.same('there is no timeline', shown, null)
  expect.same('the timeline has every task', shown?.tasks, tasks)
  const end_s = Math.max(...timelines.map(({ step_s }) => step_s))
  expect.same('the timeline shows the whole step', [shown?.start_s, shown?.end_s], [0, end_s])
}

async function checkHeadline(opened, { result, facts }, expect) {
  const { page } = opened
  for (const name of ['tokens_per_s_per_gpu', 'mfu', 'model_tflops_per_gpu', 'bubble_fraction', 'gpus'])
    await checkFigure(opened, name, result[name], expect)
  await checkFigure(opened, 'fits', result.memory.peak_bytes, expect)
  const [between, here] = await marks(page, 'step-range')
  expect.same(
    'the range has the bounds',
    [Number(between.lower), Number(between.upper)],
    [result.bounds_s.lower, result.bounds_s.upper]
  )
  expect.same('the range has the step time', Number(here.value), result.step_time_s)
  const scale = Number(here.chart.scale)
  expect.near(
    'the step time is where it belongs',
    ((here.box.x + here.box.width / 2 - here.track.x) / here.track.width) * scale,
    result.step_time_s,
    scale / 200
  )
  expect.near(
    'the range begins at the lower bound',
    ((between.box.x - here.track.x) / here.track.width) * scale,
    result.bounds_s.lower,
    scale / 200
  )
  await checkFacts(opened, facts, expect)
}

async function checkMetrics({ page }, { communication, layers, parameters, intensity, experts }, expect) {
  const numbers = async id => (await rows(page, id)).map(row => row.cells.map(Number))
  const told = communication && communication.all.busy_s > 0
  const axes = told ? Object.keys(communication.busy_s).filter(axis => communication.busy_s[axis] > 0) : []
  const ofAxis = axis => [communication.sent_bytes[axis], communication.busy_s[axis], communication.hidden_s[axis]]
  const { all } = communication ?? {}
  expect.same(
    'the communication',
    (await numbers('communication')).map(cells => cells.slice(1)),
    told ? [...axes.map(ofAxis), [all.sent_bytes, all.busy_s, all.hidden_s]].map(([sent, busy, hidden]) => [sent, busy, hidden / busy]) : []
  )
  const shown = await rows(page, 'layers')
  const sending = ['tp', 'cp', 'ep'].filter(axis => layers?.some(layer => layer.sent_bytes[axis] > 0))
  for (const layer of layers ?? []) {
    const row = shown.find(({ first, last }) => Number(first) <= layer.layer && layer.layer <= Number(last))
    expect.sameNumbers(
      `layer ${layer.layer}`,
      row?.cells.slice(1) ?? [],
      [layer.activation_bytes, ...sending.map(axis => layer.sent_bytes[axis])]
    )
  }
  expect.same(
    'the arithmetic',
    (await numbers('arithmetic')).map(cells => cells[1]),
    intensity
      ? [parameters.total, parameters.active, intensity.flops, intensity.memory_bytes, intensity.flops_per_byte, intensity.ridge_flops_per_byte]
      : []
  )
  expect.same(
    'the experts',
    (await numbers('experts')).map(([expert, , choices, slots, dropped]) => [expert, choices, slots, dropped]),
    experts ? experts.choices.map((choices, e) => [e, choices, experts.slots[e], experts.dropped[e]]) : []
  )
}

async function checkLinks({ page }, links, expect) {
  const cells = await marks(page, 'tier-heat')
  if (!links.tiers.some(({ utilisation }) => utilisation.some(value => value > 0))) {
    return expect.ok('that no link is used is said', await isEmpty(page, 'tier-heat'))
  }
  for (const { tier, utilisation } of links.tiers) {
    expect.same(
      `the utilisation of ${tier}`,
      cells.filter(cell => cell.tier === tier).map(({ value }) => Number(value)),
      utilisation
    )
  }
  const begins = cells.slice(0, links.edges_s.length - 1).map(({ x, chart }) => valueAt(chart.xScale, x))
  const span = links.edges_s.at(-1) - links.edges_s[0]
  expect.ok(
    'cells begin at the edges',
    begins.every((begin, at) => Math.abs(begin - links.edges_s[at]) < 1e-6 * span)
  )
  const colours = await page.evaluate(() =>
    [...document.querySelectorAll('[data-chart=tier-heat] .mark')].map(cell => [
      Number(cell.dataset.value),
      getComputedStyle(cell).fill,
    ])
  )
  const [least, busiest] = [Math.min, Math.max].map(choose => choose(...colours.map(([value]) => value)))
  const colourOf = wanted => colours.find(([value]) => value === wanted)[1]
  expect.ok('the colour tells more from less', least === busiest || colourOf(least) !== colourOf(busiest))

  const shown = await rows(page, 'links')
  expect.same(
    'the links and their bytes',
    shown.map(row => `${row.link} ${Number(row.value)}`).sort(),
    links.links.map(({ name, bytes }) => `${name} ${bytes}`).sort()
  )
  const users = await page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll('[data-table=links] tbody tr')].map(row => [
        row.dataset.link,
        [...row.querySelectorAll('.users .mark')].map(user => [
          user.dataset.communicator,
          user.dataset.axis,
          Number(user.dataset.value),
        ]),
      ])
    )
  )
  const curves = await page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll('[data-table=links] .spark .mark')].map(mark => [
        mark.dataset.link,
        [Number(mark.dataset.bins), Number(mark.dataset.most)],
      ])
    )
  )
  for (const link of links.links) {
    expect.same(
      `who is on ${link.name}`,
      users[link.name],
      link.users.map(({ communicator, axis, bytes }) => [communicator, axis, bytes])
    )
    expect.same(`${link.name} over the step`, curves[link.name], [link.utilisation.length, Math.max(0, ...link.utilisation)])
  }
}

async function checkMesh({ page }, mesh, expect) {
  if (mesh.axes.length === 0) return expect.ok('that there is no mesh is said', await isEmpty(page, 'mesh'))
  const axesShown = await page.evaluate(() =>
    [...document.querySelectorAll('[data-table=mesh-axes] .mark')].map(mark => [
      mark.dataset.axis,
      Number(mark.dataset.value),
      mark.dataset.reach,
    ])
  )
  expect.same(
    'the axes',
    axesShown,
    mesh.axes.map(({ axis, size, reach }) => [axis, size, reach])
  )
  const names = mesh.axes.map(({ axis }) => axis)
  const gpus = await marks(page, 'mesh')
  expect.same(
    'the GPUs',
    gpus.map(gpu => names.map(axis => Number(gpu[axis]))),
    mesh.gpus_drawn.map(gpu => names.map(axis => gpu[axis]))
  )
  for (const chosen of [0, gpus.length - 1]) {
    await page.locator(`[data-chart=mesh] [data-gpu="${chosen}"]`).hover()
    const members = await page.evaluate(() =>
      [...document.querySelectorAll('[data-chart=mesh] .gpu')].map(gpu => gpu.dataset.member ?? null)
    )
    const expected = mesh.gpus_drawn.map((_, other) => communicatorOf(mesh, chosen, other))
    expect.same(`the communicators of GPU ${chosen}`, members, expected)
  }
}

/// A communicator along an axis: every stride-th GPU of a block of stride times size. The innermost axis wins where they overlap.
function communicatorOf({ axes }, one, other) {
  if (one === other) return null
  const along = axes.find(({ stride, size }) => {
    const [block, other_block] = [one, other].map(gpu => Math.floor(gpu / (stride * size)))
    return block === other_block && one % stride === other % stride
  })
  return along?.axis ?? null
}

async function checkPath({ page }, { critical_path: { segments, kinds }, result }, expect) {
  if (segments === 0) return expect.ok('that there is no critical path is said', await isEmpty(page, 'critical-path'))
  const paths = await marks(page, 'critical-path')
  const bars = await marks(page, 'path-kinds')
  checkBars(
    'path-kinds',
    bars,
    kinds.map(({ time_s }) => time_s),
    expect
  )
  const tolerance = 1e-6 * result.step_time_s
  expect.same(
    'every segment is drawn',
    paths.reduce((total, path) => total + Number(path.segments), 0),
    segments
  )
  for (const { name, time_s } of kinds) {
    const own = paths.filter(path => path.kind === name)
    expect.near(
      `the path's ${name}`,
      own.reduce((total, { value }) => total + Number(value), 0),
      time_s,
      tolerance
    )
  }
  const bar = await page.evaluate(() => Number(document.querySelector('[data-chart=critical-path]').dataset.barHeight))
  const perPixel = valueAt(paths[0].chart.xScale, 1) - valueAt(paths[0].chart.xScale, 0)
  for (const { row, kind, value, d } of paths) {
    const areas = [...d.matchAll(/h([\d.]+)v([\d.]+)/g)].map(([, width, height]) => Number(width) * Number(height))
    const time_s = (areas.reduce((a, b) => a + b, 0) / bar) * perPixel
    expect.near(`the area of ${kind} in row ${row}`, time_s, Number(value), 0.02 * areas.length * perPixel) // two decimals
  }
}

async function checkBlame({ page }, blame, expect) {
  if (blame.length === 0) return expect.ok('that nothing was simulated again is said', await isEmpty(page, 'blame'))
  const bars = await marks(page, 'blame')
  checkBars(
    'blame',
    bars,
    blame.map(({ gained_s }) => gained_s),
    expect
  )
  expect.same(
    'most gained comes first',
    bars.map(({ value }) => Number(value)),
    blame.map(({ gained_s }) => gained_s).sort((a, b) => b - a)
  )
  expect.same(
    'what is blamed',
    bars.map(bar => `${bar.group} ${bar.blame}`).sort(),
    blame.map(({ group, name }) => `${group} ${name}`).sort()
  )
}
