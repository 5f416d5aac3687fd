// Draws a pipeline schedule, stages by time, and one layer of it kernel by kernel, from a Chrome JSON trace.
//
//     tandem simulate SCENARIO --trace step.json
//     node viz/tools/pipeline.mjs step.json timeline.png --title 'Llama 3 70B' --command 'tandem simulate ...'
//
// The picture is an SVG, or a PNG if its name ends so; that takes Chromium (/usr/bin/chromium, or the variable CHROMIUM).
import fs from 'node:fs'
import { parseArgs } from 'node:util'
import { stagesOf } from './blocks.mjs'
import { draw, width } from './drawing.mjs'

async function photograph(svg, file) {
  const { chromium } = await import('playwright-core')
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] })
  try {
    const page = await browser.newPage({ deviceScaleFactor: 2, viewport: { width, height: 100 } })
    await page.setContent(`<style>body { margin: 0 } svg { display: block }</style>${svg}`)
    await page.screenshot({ path: file, fullPage: true })
  } finally {
    await browser.close()
  }
}

const { values: { title, command }, positionals: [trace, picture] } = parseArgs({
  options: { title: { type: 'string', default: 'One training step' }, command: { type: 'string', default: '' } },
  allowPositionals: true,
})
if (!picture) throw new Error('usage: node viz/tools/pipeline.mjs TRACE.json PICTURE.svg|png [--title TEXT] [--command TEXT]')

const svg = draw(stagesOf(JSON.parse(fs.readFileSync(trace, 'utf8'))), { title, command })
if (picture.endsWith('.png')) await photograph(svg, picture)
else fs.writeFileSync(picture, svg)
