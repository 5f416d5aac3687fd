// Opens Chrome JSON traces in speedscope, a viewer that is not ours, the way speedscope's own command line does.
//
//     node viz/tests/speedscope.mjs TRACE.json...
//
// Where TRACE.result.json lies beside it, written by --json in the same run, speedscope must find the ranks and tasks it tells of.
// Chromium is looked for at /usr/bin/chromium, or where the variable CHROMIUM says.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'

const viewer = path.join(path.dirname(createRequire(import.meta.url).resolve('speedscope/package.json')), 'dist/release/index.html')
const loadTimeout_ms = 180_000
const browserFlags = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
]

/// What speedscope shows for a file, what it exports (nothing where it refused the file, which it does by a dialog), and everything
/// it complained about meanwhile.
async function open(browser, folder, name, contents) {
  const loader = path.join(folder, `${name}.js`)
  const base64 = Buffer.from(contents).toString('base64')
  fs.writeFileSync(loader, `speedscope.loadFileFromBase64(${JSON.stringify(name)}, ${JSON.stringify(base64)})`)

  const page = await browser.newPage({ acceptDownloads: true })
  const complaints = []
  page.on('pageerror', error => complaints.push(error.message))
  page.on('console', message => {
    const aboutDrawing = message.text().startsWith('[.WebGL')  // the software renderer's advice on speed
    if (['error', 'warning'].includes(message.type()) && !aboutDrawing) complaints.push(message.text())
  })
  const refused = new Promise(resolve => page.on('dialog', async dialog => {
    complaints.push(dialog.message())
    await dialog.dismiss()
    resolve(false)
  }))
  await page.goto(`${pathToFileURL(viewer)}#localProfilePath=${loader}`, { timeout: loadTimeout_ms })
  const titled = page.waitForFunction(file => document.title.startsWith(file), name, { timeout: loadTimeout_ms })
  const loaded = await Promise.race([refused, titled.then(() => true, () => false)])
  const text = await page.evaluate(() => document.body.innerText)
  const exported = loaded ? await exportedBy(page) : undefined
  await page.close()
  return { loaded, text, exported, complaints }
}

/// All profiles in speedscope's own format.
async function exportedBy(page) {
  const download = page.waitForEvent('download', { timeout: loadTimeout_ms })
  await page.getByText('Export').click()
  return JSON.parse(fs.readFileSync(await (await download).path(), 'utf8'))
}

/// Speedscope makes a profile of every process and thread that has slices, and names it after them.
function profilesExpected(trace) {
  const names = new Map()
  for (const { name, pid, tid, args } of trace.traceEvents) {
    if (name === 'process_name') names.set(pid, `${args.name} (pid ${pid})`)
    if (name === 'thread_name') names.set(`${pid}/${tid}`, `${args.name} (tid ${tid})`)
  }
  const slices = slicesOf(trace).map(({ pid, tid }) => `${names.get(pid)}, ${names.get(`${pid}/${tid}`)}`)
  return [...new Set(slices)].sort()
}

const slicesOf = trace => trace.traceEvents.filter(event => event.ph === 'X')

/// Checks one trace; `check(what, ok, detail)` counts.
async function checkTrace(browser, folder, file, check) {
  const contents = fs.readFileSync(file, 'utf8')
  const trace = JSON.parse(contents)
  const whole = await open(browser, folder, path.basename(file), contents)
  check('the trace loads', whole.loaded, whole.text)
  check('no complaints, such as slices that do not nest', whole.complaints.length === 0, whole.complaints.slice(0, 3).join('\n'))
  if (whole.exported) checkExported(file, trace, whole.exported, check)

  const cut = await open(browser, folder, 'cut.json', contents.slice(0, contents.length / 2))
  check('half a trace is refused', !cut.loaded && cut.complaints.length > 0, cut.text)
}

function checkExported(file, trace, { profiles }, check) {
  const names = profiles.map(({ name }) => name).sort()
  const expected = profilesExpected(trace)
  check('a profile per process and thread', names.join('\n') === expected.join('\n'), `shows ${names}, expected ${expected}`)
  const slices = profiles.flatMap(({ events }) => events).filter(({ type }) => type === 'O').length
  check('all slices', slices === slicesOf(trace).length, `shows ${slices} of ${slicesOf(trace).length}`)

  const resultFile = file.replace(/\.json$/, '.result.json')
  if (!fs.existsSync(resultFile)) return
  const { tasks, rank_classes } = JSON.parse(fs.readFileSync(resultFile, 'utf8')).run
  const ranks = new Set(names.map(name => name.match(/\(pid (\d+)\)/)[1])).size
  check("the report's ranks", ranks === rank_classes, `shows ${ranks}, the report has ${rank_classes}`)
  check("the report's tasks", slices === tasks, `shows ${slices}, the report has ${tasks}`)
}

async function main() {
  const files = process.argv.slice(2)
  if (files.length === 0) throw new Error('usage: node viz/tests/speedscope.mjs TRACE.json...')

  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'speedscope-'))
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: browserFlags })
  let passed = 0
  let failed = 0
  try {
    for (const file of files) {
      await checkTrace(browser, folder, file, (what, ok, detail) => {
        if (ok) return ++passed
        ++failed
        console.error(`FAILED: ${path.basename(file)}: ${what}: ${detail}`)
      })
    }
  } finally {
    await browser.close()
    fs.rmSync(folder, { recursive: true })
  }
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed ? 1 : 0
}

await main()
