// Opens Chrome JSON traces in speedscope, a viewer that is not ours, the way speedscope's own command line does.
//
//     node viz/tests/speedscope.mjs TRACE.json...
//
// Chromium is looked for at /usr/bin/chromium, or where the variable CHROMIUM says.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'

const viewer = path.join(path.dirname(createRequire(import.meta.url).resolve('speedscope/package.json')), 'dist/release/index.html')
const loadTimeout_ms = 60_000
const browserFlags = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
]

/// What speedscope shows for a file, and everything it complained about meanwhile. It refuses a file by a dialog.
async function open(browser, folder, name, contents) {
  const loader = path.join(folder, `${name}.js`)
  const base64 = Buffer.from(contents).toString('base64')
  fs.writeFileSync(loader, `speedscope.loadFileFromBase64(${JSON.stringify(name)}, ${JSON.stringify(base64)})`)

  const page = await browser.newPage()
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
  await page.goto(`${pathToFileURL(viewer)}#localProfilePath=${loader}`)
  const titled = page.waitForFunction(file => document.title.startsWith(file), name, { timeout: loadTimeout_ms })
  const loaded = await Promise.race([refused, titled.then(() => true, () => false)])
  const text = await page.evaluate(() => document.body.innerText)
  await page.close()
  return { loaded, text, complaints }
}

/// Speedscope makes a profile of every process and thread that has slices.
function profilesExpected(trace) {
  const slices = trace.traceEvents.filter(event => event.ph === 'X')
  return new Set(slices.map(event => `${event.pid}/${event.tid}`)).size
}

function processNames(trace) {
  return trace.traceEvents.filter(event => event.name === 'process_name').map(event => event.args.name)
}

/// Checks one trace; `check(what, ok, detail)` counts.
async function checkTrace(browser, folder, file, check) {
  const contents = fs.readFileSync(file, 'utf8')
  const trace = JSON.parse(contents)
  const expected = profilesExpected(trace)

  const whole = await open(browser, folder, path.basename(file), contents)
  check('the trace loads', whole.loaded, whole.text)
  check('no complaints, such as slices that do not nest', whole.complaints.length === 0, whole.complaints.slice(0, 3).join('\n'))
  const shown = Number(whole.text.match(/\(\d+\/(\d+)\)/)?.[1] ?? 1)  // "(1/12)", left out for a single profile
  check('a profile per process and thread', shown === expected, `shows ${shown}, expected ${expected}`)
  check('a process is named', processNames(trace).some(name => whole.text.includes(name)), whole.text)

  const cut = await open(browser, folder, 'cut.json', contents.slice(0, contents.length / 2))
  check('half a trace is refused', !cut.loaded && cut.complaints.length > 0, cut.text)
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
