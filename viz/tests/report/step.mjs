// A page of one step against its JSON.
import { isEmpty, marks, rows, valueAt } from './browser.mjs'
import { checkBars, checkFacts, checkFigure, checkSorting } from './common.mjs'

const axes = ['tp', 'cp', 'ep', 'pp', 'dp']

export async function checkStep(opened, report, expect) {
  await checkResult(opened, report.result, expect)
  await checkHeadline(opened, report, expect)
  await checkMemoryOverTime(opened, report, expect)
  await checkLinks(opened, report.links, expect)
  await checkMesh(opened, report.mesh, expect)
  await checkPath(opened, report, expect)
  await checkBlame(opened, report.blame, expect)
  await checkTimelines(opened, [report.timeline], expect)
}

/// The page decodes as many tasks of every row as the JSON says, and shows the longest of the timelines from its beginning to its end.
export async function checkTimelines({ page }, timelines, expect) {
  const shown = await page.evaluate(async () => {
    const timeline = await document.querySelector('[data-chart=timeline]')?.timeline
    return timeline ? { tasks: timeline.tasks(), ...timeline.visible() } : null
  })
  const tasks = timelines.map(({ rows }) => rows.map(({ streams }) => streams.reduce((sum, stream) => sum + stream.tasks, 0)))
  if (tasks.flat().every(count => count === 0)) return expect.same('there is no timeline', shown, null)
  expect.same('the timeline has every task', shown?.tasks, tasks)
  expect.same('the timeline shows the whole step', [shown?.start_s, shown?.end_s], [0, Math.max(...timelines.map(({ step_s }) => step_s))])
}

async function checkHeadline(opened, { result, facts }, expect) {
  const { page } = opened
  for (const name of ['tokens_per_s_per_gpu', 'mfu', 'model_tflops_per_gpu', 'bubble_fraction', 'gpus']) await checkFigure(opened, name, result[name], expect)
  await checkFigure(opened, 'fits', result.memory.peak_bytes, expect)
  const [between, here] = await marks(page, 'step-range')
  expect.same('the range has the bounds', [Number(between.lower), Number(between.upper)], [result.bounds_s.lower, result.bounds_s.upper])
  expect.same('the range has the step time', Number(here.value), result.step_time_s)
  const scale = Number(here.chart.scale)
  expect.near('the step time is where it belongs', (here.box.x + here.box.width / 2 - here.track.x) / here.track.width * scale, result.step_time_s, scale / 200)
  expect.near('the range begins at the lower bound', (between.box.x - here.track.x) / here.track.width * scale, result.bounds_s.lower, scale / 200)
  await checkFacts(opened, facts, expect)
}

/// What step and crosscheck share.
export async function checkResult(opened, result, expect) {
  const { page } = opened
  const banner = await page.evaluate(() => document.querySelector('.banner')?.innerText ?? '')
  expect.same('a banner exactly if it does not fit', /does not fit in memory/.test(banner), !result.memory.fits)
  const warnings = await page.evaluate(() => [...document.querySelectorAll('main > .warnings li')].map(item => item.lastChild.textContent))
  expect.same('the warnings', warnings, result.warnings)

  const parts = [result.time_s.compute, ...axes.map(axis => result.time_s.exposed[axis] ?? 0), result.time_s.bubble, result.time_s.optimizer].filter(value => value > 0)
  checkBars('step-parts', await marks(page, 'step-parts'), parts, expect)

  const stages = await marks(page, 'stage-parts')
  for (const { stage, ranks, exposed, ...times } of result.stages_s) {
    const own = stages.filter(mark => Number(mark.stage) === stage)
    const expected = [...Object.values(times), ...axes.map(axis => exposed[axis] ?? 0)].filter(value => value > 0)
    expect.sameNumbers(`the parts of stage ${stage}`, own.map(({ value }) => value), expected)
    for (const { part, value, x, width, chart } of own) {
      expect.near(`the length of ${part} of stage ${stage}`, valueAt(chart.xScale, x + width) - valueAt(chart.xScale, x), Number(value), result.step_time_s / 1e6)
    }
  }

  const kinds = await rows(page, 'kinds')
  const key = (name, phase, value) => `${name}|${phase}|${value}`
  expect.same('the kinds', kinds.map(row => key(row.kind, row.phase, Number(row.value))).sort(),
    result.kinds.map(({ name, phase, time_s }) => key(name, phase, time_s)).sort())
  if (result.kinds.length > 0) await checkSorting(opened, 'kinds', expect)
  const memory = await rows(page, 'memory')
  expect.same('the memory of stages', memory.map(row => row.cells.slice(1, 7).map(Number)),
    result.memory.stages.map(stage => [stage.parameters, stage.gradients, stage.optimizer, stage.activations, stage.buffers, stage.peak_bytes]))
}

async function checkMemoryOverTime({ page }, { memory, result }, expect) {
  if (memory.length === 0) return expect.ok('memory over time is said to be missing', await isEmpty(page, 'memory'))
  const small = await marks(page, 'memory-small')
  expect.same('a small chart for each stage', new Set(small.map(({ stage }) => stage)).size, memory.length > 1 ? memory.length : 0)
  for (const stage of memory) {
    if (memory.length > 1) await page.click(`.multiple[data-stage="${stage.stage}"]`)
    const layers = await marks(page, 'memory')
    checkLayers(layers, stage, expect)
    if (memory.length > 1) checkLayers(small.filter(mark => Number(mark.stage) === stage.stage), stage, expect)
    const held = await marks(page, 'memory-largest')
    if (stage.largest.length > 0) checkBars('memory-largest', held, stage.largest.map(({ bytes }) => bytes), expect)
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
  for (const what of ['parameters', 'gradients', 'optimizer']) expect.same(`${what} of stage ${stage.stage}`, Number(of(what).most), stage[what])
  for (const what of ['activations', 'buffers']) expect.same(`most ${what} of stage ${stage.stage}`, Number(of(what).most), most(stage[what]))
  expect.same(`points of stage ${stage.stage}`, Number(of('activations').points), stage.t_s.length)
  // The highest point of the topmost layer is the most that is held at once.
  const ys = of('buffers').d.match(/-?[\d.]+,-?[\d.]+/g).map(point => Number(point.split(',')[1]))
  const stay = stage.parameters + stage.gradients + stage.optimizer
  const together = most(stage.t_s.map((_, at) => stay + stage.activations[at] + stage.buffers[at]))
  expect.near(`the top of stage ${stage.stage}`, valueAt(of('buffers').chart.yScale, Math.min(...ys)), together, together / 200)
  const { value, at, cx, cy, chart } = of('peak')
  expect.same(`the peak of stage ${stage.stage}`, [Number(value), Number(at)], [stage.peak_bytes, stage.peak_at_s])
  expect.near(`where the peak of stage ${stage.stage} is`, valueAt(chart.yScale, cy), stage.peak_bytes, stage.peak_bytes / 1e6)
  expect.near(`when the peak of stage ${stage.stage} is`, valueAt(chart.xScale, cx), stage.peak_at_s, 1e-6 * (1 + stage.peak_at_s))
}

async function checkLinks({ page }, links, expect) {
  const cells = await marks(page, 'tier-heat')
  if (!links.tiers.some(({ utilisation }) => utilisation.some(value => value > 0))) {
    return expect.ok('that no link is used is said', await isEmpty(page, 'tier-heat'))
  }
  for (const { tier, utilisation } of links.tiers) {
    expect.same(`the utilisation of ${tier}`, cells.filter(cell => cell.tier === tier).map(({ value }) => Number(value)), utilisation)
  }
  const begins = cells.slice(0, links.edges_s.length - 1).map(({ x, chart }) => valueAt(chart.xScale, x))
  const span = links.edges_s.at(-1) - links.edges_s[0]
  expect.ok('cells begin at the edges', begins.every((begin, at) => Math.abs(begin - links.edges_s[at]) < 1e-6 * span))
  const colours = await page.evaluate(() => [...document.querySelectorAll('[data-chart=tier-heat] .mark')]
    .map(cell => [Number(cell.dataset.value), getComputedStyle(cell).fill]))
  const [least, busiest] = [Math.min, Math.max].map(choose => choose(...colours.map(([value]) => value)))
  const colourOf = wanted => colours.find(([value]) => value === wanted)[1]
  expect.ok('the colour tells more from less', least === busiest || colourOf(least) !== colourOf(busiest))

  const shown = await rows(page, 'links')
  expect.same('the links and their bytes', shown.map(row => `${row.link} ${Number(row.value)}`).sort(), links.links.map(({ name, bytes }) => `${name} ${bytes}`).sort())
  const users = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll('[data-table=links] tbody tr')]
    .map(row => [row.dataset.link, [...row.querySelectorAll('.users .mark')].map(user => [user.dataset.communicator, user.dataset.axis, Number(user.dataset.value)])])))
  const curves = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll('[data-table=links] .spark .mark')]
    .map(mark => [mark.dataset.link, [Number(mark.dataset.bins), Number(mark.dataset.most)]])))
  for (const link of links.links) {
    expect.same(`who is on ${link.name}`, users[link.name], link.users.map(({ communicator, axis, bytes }) => [communicator, axis, bytes]))
    expect.same(`${link.name} over the step`, curves[link.name], [link.utilisation.length, Math.max(0, ...link.utilisation)])
  }
}

async function checkMesh({ page }, mesh, expect) {
  if (mesh.axes.length === 0) return expect.ok('that there is no mesh is said', await isEmpty(page, 'mesh'))
  const axesShown = await page.evaluate(() => [...document.querySelectorAll('[data-table=mesh-axes] .mark')].map(mark => [mark.dataset.axis, Number(mark.dataset.value), mark.dataset.reach]))
  expect.same('the axes', axesShown, mesh.axes.map(({ axis, size, reach }) => [axis, size, reach]))
  const names = mesh.axes.map(({ axis }) => axis)
  const gpus = await marks(page, 'mesh')
  expect.same('the GPUs', gpus.map(gpu => names.map(axis => Number(gpu[axis]))), mesh.gpus_drawn.map(gpu => names.map(axis => gpu[axis])))
  for (const chosen of [0, gpus.length - 1]) {
    await page.locator(`[data-chart=mesh] [data-gpu="${chosen}"]`).hover()
    const members = await page.evaluate(() => [...document.querySelectorAll('[data-chart=mesh] .gpu')].map(gpu => gpu.dataset.member ?? null))
    const expected = mesh.gpus_drawn.map(place => {
      const different = names.filter(axis => place[axis] !== mesh.gpus_drawn[chosen][axis])
      return different.length === 1 ? different[0] : null
    })
    expect.same(`the communicators of GPU ${chosen}`, members, expected)
  }
}

async function checkPath({ page }, { critical_path: { segments, kinds }, result }, expect) {
  if (segments.length === 0) return expect.ok('that there is no critical path is said', await isEmpty(page, 'critical-path'))
  const paths = await marks(page, 'critical-path')
  const bars = await marks(page, 'path-kinds')
  checkBars('path-kinds', bars, kinds.map(({ time_s }) => time_s), expect)
  const tolerance = 1e-6 * result.step_time_s
  expect.same('every segment is drawn', paths.reduce((total, path) => total + Number(path.segments), 0), segments.length)
  for (const { name, time_s } of kinds) {
    const own = paths.filter(path => path.kind === name)
    expect.near(`the path's ${name}`, own.reduce((total, { value }) => total + Number(value), 0), time_s, tolerance)
  }
  for (const { row, kind, value, d, chart } of paths) {
    const lengths = [...d.matchAll(/M(-?[\d.]+) -?[\d.]+H(-?[\d.]+)/g)].map(([, from, to]) => valueAt(chart.xScale, Number(to)) - valueAt(chart.xScale, Number(from)))
    const pixel = result.step_time_s / 1e5 // coordinates have two decimals
    expect.near(`the length of ${kind} in row ${row}`, lengths.reduce((a, b) => a + b, 0), Number(value), pixel * lengths.length)
  }
}

async function checkBlame({ page }, blame, expect) {
  if (blame.length === 0) return expect.ok('that nothing was simulated again is said', await isEmpty(page, 'blame'))
  const bars = await marks(page, 'blame')
  checkBars('blame', bars, blame.map(({ gained_s }) => gained_s), expect)
  expect.same('most gained comes first', bars.map(({ value }) => Number(value)), blame.map(({ gained_s }) => gained_s).sort((a, b) => b - a))
  expect.same('what is blamed', bars.map(bar => `${bar.group} ${bar.blame}`).sort(), blame.map(({ group, name }) => `${group} ${name}`).sort())
}
