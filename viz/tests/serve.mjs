// Works with the page of `tandem serve` in Chromium, and compares what it shows with what the server answers.
//
//     node viz/tests/serve.mjs build/release/tandem [FOLDER FOR PICTURES]
//
// Chromium is looked for at /usr/bin/chromium, or where the variable CHROMIUM says.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import readline from 'node:readline'
import { clumsyLabels, launch } from './report/browser.mjs'
import { Expect } from './report/expect.mjs'

const [binary, pictures] = process.argv.slice(2)
if (!binary) {
  console.error('usage: node viz/tests/serve.mjs build/release/tandem [FOLDER FOR PICTURES]')
  process.exit(2)
}

const files = {
  'a-small.yaml': `model: {layers: 8, hidden: 1024, heads: 16, kv_heads: 8, ffn: 4096, vocab: 32000}
cluster: {preset: dgx-h100, gpus: 16}
parallelism: {tp: 2, sp: true, pp: 2}
training: {sequence: 2048, micro_batch: 1, global_batch: 64}
search: {axes: {tp: [1, 2, 4], pp: [1, 2], recompute: [none, full]}}
`,
  // All micro-batches are simulated, which takes seconds: long enough to be killed meanwhile.
  'b-large.yaml': `model: gpt3-175b
cluster: {preset: dgx-a100, gpus: 1024}
parallelism: {tp: 8, pp: 8}
training: {sequence: 2048, micro_batch: 1, global_batch: 4096, schedule: gpipe}
`,
  // Hours of search.
  'c-search.yaml': `model: llama3-70b
cluster: {preset: dgx-h100, gpus: 512}
parallelism: {tp: 8, sp: true, pp: 4}
training: {sequence: 8192, micro_batch: 1, global_batch: 512}
`,
}

class Server {
  static async start(folder) {
    const server = new Server()
    server.process = spawn(binary, ['serve', '--folder', folder, '--port', '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
    const lines = readline.createInterface({ input: server.process.stdout })
    server.address = await new Promise(resolve => lines.once('line', resolve))
    const url = new URL(server.address)
    server.origin = url.origin
    server.token = url.hash.replace('#token=', '')
    return server
  }

  async ask(kind, scenario) {
    const response = await fetch(`${this.origin}/api/job/${kind}`, {
      method: 'POST',
      headers: { 'X-Tandem-Token': this.token, 'X-Tandem-Turn': `test ${kind}` },
      body: JSON.stringify(scenario),
    })
    return response.json()
  }

  /// Children of the foreman with one thread: those that work on jobs.
  workers() {
    return fs
      .readdirSync('/proc')
      .filter(name => /^\d+$/.test(name))
      .filter(name => {
        try {
          const stat = fs.readFileSync(`/proc/${name}/stat`, 'utf8')
          const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
          return Number(parent) === this.process.pid && state !== 'Z' && fs.readdirSync(`/proc/${name}/task`).length === 1
        } catch {
          return false
        }
      })
      .map(Number)
  }
}

async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, colorScheme: 'light', reducedMotion: 'reduce', ...options })
  return { context, ...(await openIn(context, address)) }
}

async function openIn(context, address) {
  const page = await context.newPage()
  const complaints = [], asked = []
  page.on('pageerror', error => complaints.push(error.message))
  page.on('console', message => {
    // The browser itself tells of answers that are no success, which are part of these tests.
    if (['error', 'warning'].includes(message.type()) && !message.text().startsWith('Failed to load resource')) complaints.push(message.text())
  })
  page.on('request', request => asked.push({ url: request.url(), body: request.postData() }))
  await page.goto(address)
  return { page, complaints, asked }
}

/// Until the step of the newest scenario is shown.
const settled = page => page.waitForFunction(() => document.querySelector('.latency')?.dataset.value && !document.body.dataset.busy, null, { timeout: 60_000 })
const shown = (page, figure) => page.evaluate(name => Number(document.querySelector(`[data-figure="${name}"]`)?.dataset.value), figure)
const shownStep = page => page.evaluate(() => Number(document.querySelector('[data-chart="step-range"] .here')?.dataset.value))
const lastBody = (asked, kind) => JSON.parse(asked.filter(({ url }) => url.endsWith(`/api/job/${kind}`)).at(-1).body)

async function picture(page, name) {
  if (!pictures) return
  fs.mkdirSync(pictures, { recursive: true })
  await page.waitForTimeout(1500)
  await page.screenshot({ path: path.join(pictures, `${name}.png`) })
}

async function checkStep(server, browser) {
  const expect = new Expect('the step')
  const { page, complaints, asked, context } = await open(browser, server.address)
  await settled(page)
  expect.ok('the token is not in the address', !page.url().includes(server.token))
  expect.ok('nothing is asked elsewhere', asked.every(({ url }) => url.startsWith(server.origin) || url.startsWith('data:')))
  const small = await server.ask('step', { name: 'a-small.yaml', text: files['a-small.yaml'], changes: [] })
  expect.same('the step time is the answer', await shownStep(page), small.step_time_s)
  expect.same('so is MFU', await shown(page, 'mfu'), small.mfu)
  await page.waitForSelector('[data-chart="timeline"] canvas')
  await page.waitForSelector('#lint .findings li, [data-empty="lint"]')
  expect.ok('memory over time is drawn', (await page.locator('[data-chart="memory"]').count()) > 0)
  expect.same('no label touches another', await clumsyLabels(page), [])
  await picture(page, 'light')

  // By keyboard alone.
  expect.scope = 'the keyboard'
  await page.locator('[data-path="parallelism.tp"]').focus()
  await page.keyboard.press('ArrowRight')
  await settled(page)
  expect.ok('an arrow key moves a slider', lastBody(asked, 'step').changes.includes('parallelism.tp=4'), JSON.stringify(lastBody(asked, 'step')))
  expect.ok('the focus stays', await page.evaluate(() => document.activeElement?.dataset.path === 'parallelism.tp'))
  expect.same('the step is that of the change', await shownStep(page), (await server.ask('step', lastBody(asked, 'step'))).step_time_s)
  const order = []
  await page.evaluate(() => document.activeElement?.blur())
  await page.locator('.skip').focus()
  for (let i = 0; i < 16; ++i) {
    await page.keyboard.press('Tab')
    order.push(await page.evaluate(() => document.activeElement?.textContent?.slice(0, 20) || document.activeElement?.dataset.path || document.activeElement?.tagName))
  }
  expect.ok('Tab reaches the buttons', order.includes('Find the best'), order.join(', '))
  await page.evaluate(() => document.activeElement?.blur())
  await page.keyboard.press('4')
  expect.ok('a digit jumps to a chapter', await page.evaluate(() => document.activeElement?.id === 'chapter-4'))
  await page.keyboard.press('t')
  expect.same('t changes the theme', await page.evaluate(() => document.documentElement.dataset.theme), 'dark')
  expect.same('no complaints', complaints, [])
  await context.close()
  return expect
}

async function checkDark(server, browser) {
  const expect = new Expect('dark')
  const { page, complaints, context } = await open(browser, server.address, { colorScheme: 'dark' })
  await settled(page)
  await page.waitForSelector('[data-chart="timeline"] canvas')
  expect.same('the system decides', await page.evaluate(() => document.documentElement.dataset.theme), 'dark')
  // WCAG 2's contrast of all text of the form with the page.
  const faint = await page.evaluate(() => {
    const numbers = text => text.match(/[\d.]+/g).map(Number)
    const luminance = text => {
      const [r, g, b] = numbers(text).map(value => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4))
      return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    const page = luminance(getComputedStyle(document.body).backgroundColor)
    return [...document.querySelectorAll('aside span, aside legend, aside button, aside p')]
      .filter(element => element.textContent.trim() !== '' && element.offsetParent !== null && !element.disabled)
      .filter(element => {
        const own = luminance(getComputedStyle(element).color)
        return (Math.max(own, page) + 0.05) / (Math.min(own, page) + 0.05) < 4.5
      })
      .map(element => element.textContent)
  })
  expect.same('all text can be read', faint, [])
  await picture(page, 'dark')
  expect.same('no complaints', complaints, [])
  await context.close()
  return expect
}

async function checkQuickChanges(server, browser) {
  const expect = new Expect('1,000 quick changes')
  const { page, complaints, asked, context } = await open(browser, server.address)
  await settled(page)
  const before = asked.filter(({ url }) => url.endsWith('/step')).length
  await page.evaluate(async () => {
    const slider = document.querySelector('[data-path="training.global_batch"]')
    for (let i = 0; i < 1000; ++i) {
      const to = i === 999 ? Number(slider.max) - 4 : Number(slider.max) - (i % 3)
      slider.value = String(to)
      slider.dispatchEvent(new Event('input', { bubbles: true }))
      if (i % 4 === 0) await new Promise(resolve => setTimeout(resolve, 1))
    }
  })
  await settled(page)
  const steps = asked.filter(({ url }) => url.endsWith('/step')).length - before
  expect.ok('far fewer are asked for', steps >= 2 && steps < 300, steps)
  const last = lastBody(asked, 'step')
  const value = await page.evaluate(() => document.querySelector('[data-path="training.global_batch"]').getAttribute('aria-valuetext'))
  expect.ok('the last one asked is the newest', last.changes.includes(`training.global_batch=${value}`), JSON.stringify(last.changes))
  expect.same('it is what is shown', await shownStep(page), (await server.ask('step', last)).step_time_s)
  expect.same('no complaints', complaints, [])
  console.log(`1,000 changes: ${steps} steps asked for`)
  await context.close()
  return expect
}

/// A process that may have ended meanwhile.
function crash(worker) {
  try {
    process.kill(worker, 'SIGSEGV')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}

async function checkCrash(server, browser) {
  const expect = new Expect('a crashed child')
  const { page, complaints, context } = await open(browser, server.address)
  await settled(page)
  const before = await shownStep(page)
  await page.selectOption('.files', 'b-large.yaml')
  const told = page.waitForSelector('.said-first .banner', { timeout: 60_000 })
  let over = false
  told.finally(() => (over = true))
  while (!over) {
    server.workers().forEach(crash)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  expect.ok('the page says how it died', /killed by signal 11/.test(await page.locator('.said-first').innerText()), await page.locator('.said-first').innerText())
  await picture(page, 'crash')
  expect.ok('the form keeps its fields', await page.locator('[data-path="parallelism.tp"]').isVisible())
  await page.selectOption('.files', 'a-small.yaml')
  await page.waitForFunction(() => !document.querySelector('.said-first .banner'), null, { timeout: 60_000 })
  await settled(page)
  expect.same('the next step is shown', await shownStep(page), before)
  expect.same('no complaints', complaints, [])
  await context.close()
  return expect
}

async function checkComparison(server, browser) {
  const expect = new Expect('two side by side')
  const { page, complaints, asked, context } = await open(browser, server.address)
  await settled(page)
  const a = await shownStep(page)
  await page.click('text=Compare')
  await page.waitForSelector('[data-figure="change"]')
  await page.selectOption('[data-path="training.recompute"]', 'full')
  await settled(page)
  const b = (await server.ask('step', lastBody(asked, 'step'))).step_time_s
  await page.waitForFunction(wanted => Math.abs(Number(document.querySelector('[data-figure="change"]')?.dataset.value) - wanted) < 1e-12, b - a)
  expect.same('each has its card', await page.evaluate(() => [...document.querySelectorAll('.both .here')].map(mark => Number(mark.dataset.value))), [a, b])
  await page.waitForSelector('[data-chart="timeline"] canvas')
  await picture(page, 'compare')
  await page.click('text=One alone')
  await page.waitForFunction(() => !document.querySelector('.both'))
  expect.same('A is as it was', await shownStep(page), a)
  expect.same('no complaints', complaints, [])
  await context.close()
  return expect
}

async function checkPinsAndLinks(server, browser) {
  const expect = new Expect('pins and links')
  const { page, complaints, asked, context } = await open(browser, server.address)
  await settled(page)
  await page.waitForFunction(() => document.querySelector('[data-path="parallelism.pp"]').max !== '0')
  const first = await shownStep(page)
  await page.keyboard.press('p')
  await page.selectOption('[data-path="training.recompute"]', 'full')
  await settled(page)
  const second = await shownStep(page)
  await page.waitForFunction(() => document.querySelector('[data-path="training.recompute"]').value === 'full')
  await page.waitForTimeout(300)
  await page.keyboard.press('p')
  await page.evaluate(() => document.activeElement?.blur())
  await page.keyboard.press('p')
  await page.waitForSelector('[data-table="points"] tr[data-point="1"]')
  const cells = await page.evaluate(() => [...document.querySelectorAll('[data-table="points"] tbody tr')].map(row => [...row.children].map(cell => cell.dataset.value)))
  expect.same('there are two points', cells.length, 2)
  expect.ok('with their step times', cells[0]?.includes(String(first)) && cells[1]?.includes(String(second)), JSON.stringify(cells))

  const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=Save as a study')])
  const study = fs.readFileSync(await download.path(), 'utf8')
  expect.ok('the study has both', /training\.recompute: full/.test(study) && /training\.recompute: ~/.test(study), study)
  await page.locator('#chapter-6').scrollIntoViewIfNeeded()
  await picture(page, 'pins')

  await page.click('text=Copy link')
  const link = await page.waitForSelector('a.shared:not([hidden])').then(element => element.getAttribute('href'))
  expect.ok('the link has no token', !link.includes(server.token))
  const other = await openIn(context, link)
  await settled(other.page)
  expect.same('the link opens the same step', await shownStep(other.page), second)
  expect.same('with the same changes', lastBody(other.asked, 'step').changes, lastBody(asked, 'step').changes)
  expect.same('no complaints', [complaints, other.complaints], [[], []])
  await context.close()

  const stranger = await open(browser, link)
  await stranger.page.waitForSelector('.banner')
  expect.ok('without a token nothing is shown', /token/.test(await stranger.page.locator('.banner').innerText()))
  await stranger.context.close()
  return expect
}

async function checkSearch(server, browser) {
  const expect = new Expect('the search')
  const { page, complaints, asked, context } = await open(browser, server.address)
  await settled(page)
  await page.click('text=Find the best')
  await page.waitForSelector('[data-table="plans"] button', { timeout: 120_000 })
  await page.waitForFunction(() => !document.querySelector('.search progress'), null, { timeout: 120_000 })
  const best = await page.evaluate(() => [...document.querySelectorAll('[data-table="plans"] tbody tr')].map(row => Number(row.children[1].dataset.value)))
  expect.ok('the best is first', best.length > 1 && best.every((time, at) => at === 0 || time >= best[at - 1]), JSON.stringify(best))
  await picture(page, 'found')
  await page.click('[data-table="plans"] tbody tr:first-child button')
  await settled(page)
  const taken = (await server.ask('step', lastBody(asked, 'step'))).step_time_s
  expect.same('a plan that is taken has its time', [await shownStep(page), taken], [best[0], best[0]])

  await page.selectOption('.files', 'c-search.yaml')
  await settled(page)
  await page.click('text=Find the best')
  await page.waitForFunction(() => (document.querySelector('.search progress')?.value ?? 0) > 0, null, { timeout: 60_000 })
  await picture(page, 'searching')
  await page.click('.search >> text=Stop')
  await page.waitForFunction(() => /Stopped/.test(document.querySelector('.search')?.textContent ?? ''))
  let left = server.workers()
  for (let i = 0; i < 500 && left.length > 0; ++i) {
    await new Promise(resolve => setTimeout(resolve, 20))
    left = server.workers()
  }
  expect.same('no process is left', left, [])
  expect.same('no complaints', complaints, [])
  await context.close()
  return expect
}

async function main() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'serve-'))
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), text)
  const server = await Server.start(folder)
  const browser = await launch()
  const results = []
  try {
    for (const check of [checkStep, checkDark, checkQuickChanges, checkCrash, checkComparison, checkPinsAndLinks, checkSearch]) {
      const result = await check(server, browser).catch(error => {
        const failed = new Expect(check.name)
        failed.ok(error.message, false)
        return failed
      })
      results.push(result)
    }
  } finally {
    await browser.close()
    server.process.kill('SIGINT')
    fs.rmSync(folder, { recursive: true })
  }
  const passed = results.reduce((sum, result) => sum + result.passed, 0)
  const failed = results.reduce((sum, result) => sum + result.failures.length, 0)
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed ? 1 : 0
}

await main()
