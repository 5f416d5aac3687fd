// A page with nothing but a timeline on it, in headless Chromium, for tests.
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'vite'

const source = path.join(path.dirname(fileURLToPath(import.meta.url)), '../src')
const entry = `
  import { applyPalette } from '${source}/palette.ts'
  import { mountTimeline } from '${source}/timeline/index.ts'
  const { timelines, criticalPath } = JSON.parse(document.getElementById('report').textContent)
  applyPalette()
  window.container = document.getElementById('container')
  mountTimeline(window.container, timelines, criticalPath ? { criticalPath } : {})
`

/// The entry and what it imports as one script, and their style.
async function bundle() {
  const folder = temporaryFolder()
  const file = path.join(folder, 'entry.ts')
  fs.writeFileSync(file, entry)
  const [{ output }] = await build({
    configFile: false, logLevel: 'error', root: source,
    build: { write: false, target: 'es2022', minify: false, lib: { entry: file, formats: ['iife'], name: 'entry', cssFileName: 'entry' } },
  })
  fs.rmSync(folder, { recursive: true })
  const style = output.find(({ fileName }) => fileName.endsWith('.css'))
  return { script: output.find(({ type }) => type === 'chunk').code, style: style?.source ?? '' }
}

let built
/// Writes the page; `above` is what stands over the timeline.
export async function writePage(folder, name, content, above = '') {
  built ??= await bundle()
  const file = path.join(folder, `${name}.html`)
  const style = `body{margin:16px;background:var(--page);color:var(--ink);font-family:system-ui,sans-serif}${built.style}`
  fs.writeFileSync(file, `<!doctype html><html lang="en"><meta charset="utf-8"><title>${name}</title><link rel="icon" href="data:,">` +
    `<style>${style}</style>${above}<div id="container"></div>` +
    `<script type="application/json" id="report">${JSON.stringify(content).replaceAll('<', '\\u003c')}</script>` +
    `<script>${built.script.replaceAll('</script', '<\\/script')}</script>`)
  return pathToFileURL(file).href
}

export const temporaryFolder = () => fs.mkdtempSync(path.join(os.tmpdir(), 'timeline-'))

/// A page that has the timeline on it; `complaints` collects errors, and requests for anything but the page.
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  const page = await context.newPage()
  const complaints = []
  page.on('pageerror', error => complaints.push(error.message))
  page.on('console', message => { if (['error', 'warning'].includes(message.type())) complaints.push(message.text()) })
  page.on('request', request => { if (request.url() !== url && !request.url().startsWith('data:')) complaints.push(request.url()) })
  await page.goto(url)
  await page.evaluate(() => window.container.timeline)
  return { page, complaints }
}
