// The timeline in headless Chromium, from disk: what it shows is what was encoded, and it can be steered by pointer, wheel, touch and
// keys. How long frames take is for a benchmark to say: ./dev bench browser.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import test, { after, before, describe } from 'node:test'
import { panning } from './frames.mjs'
import { packedPath } from './packed.mjs'
import { launch } from './report/browser.mjs'
import { encode, pipeline, types } from './timeline_encoding.mjs'
import { open, temporaryFolder, writePage } from './timeline_page.mjs'

const large = { stages: 16, microBatches: 16, layers: 54 }  // 83,232 tasks
const small = { stages: 4, microBatches: 8, layers: 4 }
const filler = '<div style="height:60px"></div>'
const space = '<style>body{padding-bottom:2000px}</style>'  // so that the page can scroll

let browser, folder
before(async () => {
  folder = temporaryFolder()
  browser = await launch()
})
after(async () => {
  await browser.close()
  fs.rmSync(folder, { recursive: true })
})

/// Opens a page for `body`, which gets it and helpers, and checks that nothing complained.
async function withPage(name, content, options, body) {
  const { page, complaints } = await open(browser, await writePage(folder, name, content, filler + space), options)
  const canvas = page.locator('canvas.timeline-rows')
  const helpers = {
    visible: () => page.evaluate(async () => (await window.container.timeline).visible()),
    show: (start_s, end_s) => page.evaluate(async range => (await window.container.timeline).show(...range), [start_s, end_s]),
    lines: () => page.evaluate(async () => (await window.container.timeline).lines()),
    x: time_s => page.evaluate(async time => (await window.container.timeline).x(time), time_s),
    at: (x, y) => page.evaluate(async ([x, y]) => (await window.container.timeline).at(x, y), [x, y]),
    hover: async (x, y) => {
      const box = await canvas.boundingBox()
      await page.mouse.move(box.x + x, box.y + y)
      await helpers.frame()
    },
    frame: () => page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))),
    tooltip: async () => {
      const box = page.locator('.timeline-tooltip')
      return await box.isVisible() ? box.innerText() : ''
    },
    pixel: (x, y) => canvas.evaluate((element, [x, y]) => {
      const ratio = element.width / element.clientWidth
      return [...element.getContext('2d').getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data].slice(0, 3)
    }, [x, y]),
    canvas,
  }
  await body(page, helpers)
  assert.deepEqual(complaints, [])
  await page.context().close()
}

const rgb = hex => [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16))
const close = (actual, expected, tolerance) => assert.ok(Math.abs(actual - expected) <= tolerance, `${actual} for ${expected}`)
const middle_s = (plan, task) => (task.start + task.end) / 2 * plan.tick_s

describe('a step of 16 stages', () => {
  const plan = pipeline(large)
  const content = { timelines: [{ title: 'simulated', timeline: encode(plan) }] }

  test('shows every task, and any of them under the pointer', async () => {
    await withPage('large', content, {}, async (page, { show, lines, x, at, hover, tooltip }) => {
      const tasks = await page.evaluate(async () => (await window.container.timeline).tasks())
      assert.deepEqual(tasks, [plan.rows.map(row => row.streams.reduce((sum, stream) => sum + stream.tasks.length, 0))])
      assert.equal(tasks[0].reduce((sum, count) => sum + count), 83232)

      let first = 0
      const firsts = plan.rows.map(row => { const here = first; first += tasks[0][row.stage]; return here })
      for (const [row, index] of [[0, 5], [3, 400], [9, 1234], [15, 1000]]) {
        const task = plan.rows[row].streams[0].tasks[index]
        await show((task.start - 900) * 1e-6, (task.end + 900) * 1e-6)
        const line = (await lines())[row]
        const [px, py] = [await x(middle_s(plan, task)), line.top + line.height / 2]
        const hit = await at(px, py)
        assert.deepEqual([hit.kind, hit.row, hit.index], ['task', row, firsts[row] + index])
        await hover(px, py)
        const text = await tooltip()
        const type = types[task.type]
        for (const part of [type.name, `${type.op} · ${type.phase}`, type.operands, `micro-batch\n${task.microBatch}`,
          `layer\n${task.layer}`, 'chunk\n0', `bound by\n${type.bound}`, plan.rows[row].name]) {
          assert.ok(text.includes(part), `${part} in ${text}`)
        }
      }
    })
  })

  test('work comes with its rate, communication with its communicator and what of it is exposed', async () => {
    await withPage('rates', content, {}, async (page, { show, lines, x, hover, tooltip }) => {
      const [compute, tp, pp] = plan.rows[2].streams
      const gemm = compute.tasks[1]  // 3.6 TFLOP and 920 MB in 750 us
      await show((gemm.start - 900) * 1e-6, (gemm.end + 900) * 1e-6)
      const line = (await lines())[2]
      await hover(await x(middle_s(plan, gemm)), line.top + line.height / 2)
      assert.match(await tooltip(), /work\n3\.600.TFLOP at 4\.800.PFLOP\/s\nbytes\n920\.0.MB at 1\.227.TB\/s/)
      await hover(await x(middle_s(plan, tp.tasks[0])), line.top + line.height + line.communication / 2 + 1)
      assert.match(await tooltip(), /all_gather[^]*bytes\n268\.0.MB at 1\.340.TB\/s\ncommunicator\ntp, 8.ranks\nbound by\nnvlink\nexposed\n100\.0/)
      const send = pp.tasks[0]  // in the first 400 us of a forward pass: its first norm runs for 50, then 200 us of communication
      await show((send.start - 900) * 1e-6, (send.end + 900) * 1e-6)
      await page.locator('.timeline-row').nth(2).click()
      const sends = (await lines()).find(({ row, stream }) => row === 2 && stream === 2)
      await hover(await x(middle_s(plan, send)), sends.top + sends.height / 2)
      assert.match(await tooltip(), /send forward\s*send · forward[^]*exposed\n50\.0.%/)
    })
  })

  test('is drawn in every frame while it pans', async () => {
    await withPage('frames', content, {}, async (page, { visible, show }) => {
      const { end_s: whole_s } = await visible()
      for (const share of [0.9, 0.3, 0.02]) {
        await show(0, share * whole_s)
        const { draws_ms } = await pan(page, 60)
        assert.ok(draws_ms.length >= 58, `${draws_ms.length} of 60 frames drawn with ${share} of the step in view`)
      }
    })
  })
})

const pan = async (page, frames) => (await page.evaluateHandle(() => window.container)).evaluate(panning, frames)

test('700 thousand tasks open and pan', async () => {
  const plan = pipeline({ stages: 16, microBatches: 60, layers: 121 })
  await withPage('larger', { timelines: [{ title: '', timeline: encode(plan) }] }, {}, async (page, { visible, show }) => {
    const tasks = await page.evaluate(async () => (await window.container.timeline).tasks())
    assert.equal(tasks[0].reduce((sum, count) => sum + count), 16 * (60 * (6 * 121 + 1) + 2))
    const { end_s } = await visible()
    for (const share of [0.9, 0.02]) {
      await show(0, share * end_s)
      const { draws_ms } = await pan(page, 30)
      assert.ok(draws_ms.length >= 28, `${draws_ms.length} of 30 frames drawn`)
    }
  })
})

describe('a small step', () => {
  const plan = pipeline(small)
  const content = { timelines: [{ title: 'simulated', timeline: encode(plan) }] }
  const whole_s = plan.step_s

  test('opens with all of the step; passes have their phase\'s colour, waits the background\'s', async () => {
    await withPage('colours', content, {}, async (page, { visible, lines, x, at, pixel }) => {
      assert.deepEqual(await visible(), { start_s: 0, end_s: whole_s })
      const [line] = await lines()
      const hit = await at(await x(2e-3), line.top + 4)
      assert.deepEqual([hit.kind, hit.index, hit.description.title], ['pass', 0, 'forward pass'])
      assert.deepEqual(await pixel(await x(0.5e-3), line.top + 4), rgb('#0072b2'))
      const backward = await x(33e-3)  // the first backward of stage 0 begins after 2 * 4 forwards of 4 ms
      assert.deepEqual(await pixel(backward, line.top + 3), rgb('#e69f00'))
      assert.deepEqual(await pixel(backward, line.top + line.height - 3), rgb('#009e73'))
      assert.equal(await at(await x(25e-3), line.top + 4), null)
      await page.emulateMedia({ colorScheme: 'dark' })
      await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark')
      await page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve))))
      const idle = await pixel(await x(25e-3) + 2, line.top + 4)
      assert.ok(Math.max(...idle) < 64, `${idle}`)
    })
  })

  test('wheel: the page\'s without the focus, the timeline\'s with it or with ctrl', async () => {
    await withPage('wheel', content, {}, async (page, { visible, hover, frame, canvas }) => {
      await hover(300, 20)
      await page.mouse.wheel(0, 120)
      await page.waitForFunction(() => window.scrollY > 0)
      assert.deepEqual(await visible(), { start_s: 0, end_s: whole_s })
      await page.evaluate(() => window.scrollTo(0, 0))
      await frame()

      const { width } = await canvas.boundingBox()
      await hover(300, 20)
      await page.keyboard.down('Control')
      await page.mouse.wheel(0, -400)
      await page.keyboard.up('Control')
      await frame()
      const nearer = await visible()
      assert.ok(nearer.end_s - nearer.start_s < 0.7 * whole_s)
      close(nearer.start_s + (300 / width) * (nearer.end_s - nearer.start_s), (300 / width) * whole_s, 1e-6 * whole_s)

      await page.mouse.down()
      await page.mouse.up()
      await page.mouse.wheel(0, -400)
      await frame()
      const nearest = await visible()
      assert.ok(nearest.end_s - nearest.start_s < 0.7 * (nearer.end_s - nearer.start_s))
      await page.mouse.wheel(100, 0)
      await frame()
      close((await visible()).start_s - nearest.start_s, (100 / width) * (nearest.end_s - nearest.start_s), 1e-6 * whole_s)
      assert.equal(await page.evaluate(() => window.scrollY), 0)
    })
  })

  test('dragging pans by as much as the pointer moves; a double click zooms to what is there', async () => {
    await withPage('drag', content, {}, async (page, { visible, show, x, lines, frame, canvas }) => {
      await show(0.4 * whole_s, 0.6 * whole_s)
      const box = await canvas.boundingBox()
      const before = await visible()
      await page.mouse.move(box.x + 500, box.y + 20)
      await page.mouse.down()
      await page.mouse.move(box.x + 400, box.y + 25, { steps: 5 })
      await page.mouse.up()
      await frame()
      const moved = await visible()
      close(moved.start_s - before.start_s, (100 / box.width) * 0.2 * whole_s, 1e-6 * whole_s)
      close(moved.end_s - moved.start_s, 0.2 * whole_s, 1e-9)

      await show(0, whole_s)
      const [line] = await lines()
      await page.mouse.dblclick(box.x + await x(6e-3), box.y + line.top + 4)  // micro-batch 1: 4 to 8 ms
      const pass = await visible()
      close(pass.start_s, 4e-3 - 0.4e-3, 1e-6)
      close(pass.end_s, 8e-3 + 0.4e-3, 1e-6)
    })
  })

  test('two fingers zoom', async () => {
    await withPage('touch', content, { hasTouch: true }, async (page, { visible, frame, canvas }) => {
      const box = await canvas.boundingBox()
      const touch = await page.context().newCDPSession(page)
      const send = (type, xs) => touch.send('Input.dispatchTouchEvent',
        { type, touchPoints: xs.map((x, id) => ({ x: box.x + x, y: box.y + 20, id })) })
      await send('touchStart', [400])
      await send('touchStart', [400, 600])
      for (let step = 1; step <= 5; ++step) await send('touchMove', [400 - 20 * step, 600 + 20 * step])
      await send('touchEnd', [])
      await frame()
      const { start_s, end_s } = await visible()
      close(end_s - start_s, whole_s / 2, 0.02 * whole_s)
      close(start_s + (500 / box.width) * (end_s - start_s), (500 / box.width) * whole_s, 0.01 * whole_s)
    })
  })

  test('keys zoom, pan, select rows, open streams and go from task to task', async () => {
    await withPage('keys', content, {}, async (page, { visible, lines, frame, tooltip, canvas }) => {
      await canvas.focus()
      const press = async key => { await page.keyboard.press(key); await frame() }
      await press('+')
      await press('+')
      const { start_s, end_s } = await visible()
      close(end_s - start_s, whole_s / 2.25, 1e-9)
      await press('ArrowRight')
      close((await visible()).start_s - start_s, 0.12 * (end_s - start_s), 1e-9)
      await press('Home')
      assert.equal((await visible()).start_s, 0)
      await press('-')
      await press('0')
      assert.deepEqual(await visible(), { start_s: 0, end_s: whole_s })

      await press('ArrowDown')
      await press('ArrowDown')
      assert.match(await tooltip(), /pass[^]*rank 8/)
      await press('Enter')
      const streams = plan.rows[1].streams.length
      assert.equal((await lines()).length, small.stages + streams)
      assert.deepEqual((await lines()).slice(1, 3).map(({ row, stream }) => [row, stream]), [[1, -1], [1, 0]])
      await press('ArrowDown')
      const first = await tooltip()
      await press('Shift+ArrowRight')
      const second = await tooltip()
      const started = text => parseFloat(text.match(/start\n([\d.]+)/)[1])
      const compute = plan.rows[1].streams[0].tasks
      const index = compute.findIndex(({ start }) => Math.abs(start / 1000 - started(first)) < 1e-3)
      close(started(second), compute[index + 1].start / 1000, 1e-3)
      await press('Enter')
      assert.equal((await lines()).length, small.stages)
      await page.locator('.timeline-row').nth(2).focus()
      await press('Enter')
      assert.equal((await lines()).length, small.stages + plan.rows[2].streams.length)
      await press('Enter')
      assert.equal((await lines()).length, small.stages)
      await canvas.focus()
      await press('ArrowUp')
      assert.match(await tooltip(), /rank 0/)
      await press('Escape')
      assert.equal(await page.evaluate(() => document.activeElement === document.body), true)
      assert.equal(await tooltip(), '')
    })
  })

  test('the overview moves the window, and spans a new one', async () => {
    await withPage('overview', content, {}, async (page, { visible, show, frame }) => {
      const box = await page.locator('.timeline-strip').boundingBox()
      const drag = async (from, to) => {
        await page.mouse.move(box.x + from * box.width, box.y + 10)
        await page.mouse.down()
        await page.mouse.move(box.x + to * box.width, box.y + 12, { steps: 4 })
        await page.mouse.up()
        await frame()
      }
      const share = async () => Object.values(await visible()).map(time_s => time_s / whole_s)
      await drag(0.2, 0.4)
      let [start, end] = await share()
      close(start, 0.2, 0.002)
      close(end, 0.4, 0.002)
      await drag(0.3, 0.5)
      ;[start, end] = await share()
      close(start, 0.4, 0.003)
      close(end, 0.6, 0.003)
      await page.mouse.click(box.x + 0.1 * box.width, box.y + 10)
      ;[start, end] = await share()
      close((start + end) / 2, 0.1, 0.003)
      await show(0, whole_s)
      await frame()
      assert.equal(await page.locator('.timeline-window').isVisible(), false)
    })
  })

  test('the critical path is shown on demand, and what is not on it fades', async () => {
    const criticalPath = packedPath([{ row: 0, start_s: 0, end_s: 8e-3, kind: '', task: '', tasks: 2 },
      { row: 1, start_s: 8e-3, end_s: whole_s, kind: '', task: '', tasks: 9 }], [])
    await withPage('path', { ...content, criticalPath }, {}, async (page, { lines, x, pixel, frame }) => {
      const [line] = await lines()
      const [on, off] = [[await x(1e-3), line.top + 4], [await x(13e-3), line.top + 4]]
      const before = [await pixel(...on), await pixel(...off)]
      await page.getByRole('button', { name: 'Critical path' }).click()
      await frame()
      assert.deepEqual(await pixel(...on), before[0])
      const faded = await pixel(...off)
      assert.ok(faded.every((value, channel) => value >= before[1][channel]) && faded[0] > before[1][0] + 50, `${faded}`)
      await page.locator('canvas.timeline-rows').focus()
      await page.keyboard.press('c')
      await frame()
      assert.deepEqual(await pixel(...off), before[1])
    })
    await withPage('no-path', content, {}, async page => {
      assert.equal(await page.getByRole('button', { name: 'Critical path' }).isVisible(), false)
    })
  })

  test('follows the width of the page, and the screen\'s pixels', async () => {
    await withPage('resize', content, { deviceScaleFactor: 2 }, async (page, { canvas, x, visible, frame }) => {
      const size = () => canvas.evaluate(element => [element.width, element.clientWidth])
      assert.equal((await size())[0], 2 * (await size())[1])
      await page.setViewportSize({ width: 800, height: 700 })
      await frame()
      const [width, shown] = await size()
      assert.equal(width, 2 * shown)
      assert.ok(shown < 800)
      close(await x((await visible()).end_s), shown, 1e-6)
    })
  })

  test('paper gets all of the step in light colours; the screen is as before', async () => {
    await withPage('paper', content, { colorScheme: 'dark' }, async (page, { show, visible, x, lines, canvas, frame }) => {
      await show(0.5 * whole_s, 0.6 * whole_s)
      await frame()
      const printed = await canvas.evaluate(async element => {
        window.dispatchEvent(new Event('beforeprint'))
        const timeline = await window.container.timeline
        const ratio = element.width / 900
        const at = (time_s, y) => [...element.getContext('2d').getImageData(timeline.x(time_s) * ratio, y * ratio, 1, 1).data].slice(0, 3)
        const [line] = timeline.lines()
        const result = { ...timeline.visible(), forward: at(0.5e-3, line.top + 4), waiting: at(25.3e-3, line.top + 4) }
        window.dispatchEvent(new Event('afterprint'))
        return result
      })
      assert.deepEqual([printed.start_s, printed.end_s, printed.forward], [0, whole_s, rgb('#0072b2')])
      assert.ok(Math.min(...printed.waiting) > 220, `${printed.waiting}`)
      const after = await visible()
      close(after.start_s, 0.5 * whole_s, 1e-9)
      close(after.end_s, 0.6 * whole_s, 1e-9)
      const pdf = await page.pdf({ landscape: true })
      assert.ok(pdf.length > 5000)
    })
  })
})

test('simulated and measured: aligned rows, one axis, and each task\'s other time', async () => {
  const simulated = pipeline(small)
  const measured = structuredClone(simulated)
  for (const { streams } of measured.rows) {
    for (const { tasks } of streams) for (const task of tasks) { task.start *= 2; task.end *= 2 }
  }
  measured.step_s *= 2
  const timelines = [{ title: 'simulated', timeline: encode(simulated) }, { title: 'measured', timeline: encode(measured) }]
  await withPage('two', { timelines }, {}, async (page, { visible, lines, show, x, hover, tooltip }) => {
    assert.deepEqual(await visible(), { start_s: 0, end_s: measured.step_s })
    assert.deepEqual((await lines()).map(({ row, timeline }) => [row, timeline]), [0, 1, 2, 3].flatMap(row => [[row, 0], [row, 1]]))
    assert.deepEqual((await page.locator('.timeline-row').allInnerTexts()).slice(0, 2).map(text => text.replace(/\s+/g, ' ')),
      ['stage 0 simulated', 'stage 0 measured'])
    const task = simulated.rows[1].streams[0].tasks[1]  // 750 us, and 1.5 ms
    await show((task.start - 900) * 1e-6, (task.end + 900) * 1e-6)
    const line = (await lines())[2]
    await hover(await x((task.start + 400) * 1e-6), line.top + 4)
    assert.match(await tooltip(), /duration\n750\.0.µs[^]*measured\n1\.500.ms, \+100\.0.%[^]*simulated: rank 8/)
  })
})

test('a single task', async () => {
  const rows = [{ stage: 0, rank: 0, name: 'rank 0', streams: [{ stream: 0, tasks: [{ start: 0, end: 10, type: 1 }] }] }]
  const timeline = encode({ tick_s: 1e-6, step_s: 10e-6, streams: ['compute'], types, rows })
  await withPage('one', { timelines: [{ title: '', timeline }] }, {}, async (page, { visible, hover, tooltip, canvas, frame }) => {
    await hover(300, 10)
    assert.match(await tooltip(), /mlp up[^]*duration\n10\.00.µs/)
    await canvas.focus()
    for (let i = 0; i < 40; ++i) await page.keyboard.press('+')
    await frame()
    const { start_s, end_s } = await visible()
    close(end_s - start_s, 50e-9, 1e-15)
  })
})

test('communication without kernels, a step without length, and no task at all', async () => {
  const plan = streams => ({
    tick_s: 1e-6, step_s: 10e-6, streams: ['compute', 'tp'], types,
    rows: [{ stage: 0, rank: 0, name: 'rank 0', streams }],
  })
  const only = encode(plan([{ stream: 1, tasks: [{ start: 0, end: 10, type: 5 }] }]))
  await withPage('communication', { timelines: [{ title: '', timeline: only }] }, {}, async (page, { lines, at }) => {
    const [line] = await lines()
    const hit = await at(200, line.top + line.height + 2)
    assert.ok(hit.description.facts.some(([name, value]) => name === 'exposed' && value.startsWith('100')))
  })
  const instant = encode({ ...plan([{ stream: 0, tasks: [{ start: 0, end: 0, type: 0 }] }]), step_s: 0 })
  await withPage('instant', { timelines: [{ title: '', timeline: instant }] }, {}, async (page, { hover, visible }) => {
    await hover(10, 10)
    assert.ok(Object.values(await visible()).every(Number.isFinite))
  })
  for (const timeline of [encode(plan([])), encode({ ...plan([]), rows: [] })]) {
    await withPage('none', { timelines: [{ title: '', timeline }] }, {}, async page => {
      assert.equal(await page.locator('#container').innerText(), 'No task ran.')
    })
  }
})

test('a broken column is said where the timeline would be', async () => {
  const timeline = encode(pipeline({ stages: 1, microBatches: 1, layers: 1 }))
  timeline.columns.type = timeline.columns.chunk
  await withPage('broken', { timelines: [{ title: '', timeline }] }, {}, async page => {
    assert.match(await page.getByRole('alert').innerText(), /column type/)
  })
})
