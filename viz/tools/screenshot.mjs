// A part of a report as a PNG, as Chromium shows it.
//
//     node viz/tools/screenshot.mjs report.html picture.png --from HEADING [--to HEADING] [--width 1100]
//
// From the first heading that begins with one text up to the one that begins with the other, or to the page's foot.
import fs from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'

const { positionals: [report, picture], values } = parseArgs({
  allowPositionals: true, options: { from: { type: 'string' }, to: { type: 'string' }, width: { type: 'string', default: '1100' } },
})
if (!report || !picture || !values.from) {
  console.error('usage: node viz/tools/screenshot.mjs report.html picture.png --from HEADING [--to HEADING] [--width 1100]')
  process.exit(2)
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] })
try {
  const page = await browser.newPage({ viewport: { width: Number(values.width), height: 1400 }, colorScheme: 'light', deviceScaleFactor: 1.5 })
  await page.goto(`file://${path.resolve(report)}`)
  await page.addStyleTag({ content: 'header { position: static !important }' })
  await page.waitForFunction(() => document.querySelector('.timeline-labels')?.childElementCount !== 0)
  const heading = text => page.locator('h2, h3').filter({ hasText: new RegExp(`^\\d*\\s*${text}`) }).first()
  await heading(values.from).evaluate(element => element.scrollIntoView())
  await page.waitForTimeout(1500) // what was not in view is drawn now, and may have moved what is below it
  await heading(values.from).evaluate(element => element.scrollIntoView())
  const from = await heading(values.from).boundingBox()
  const to = await (values.to ? heading(values.to) : page.locator('footer')).boundingBox()
  const margin = 16
  const clip = { x: 0, y: Math.max(0, from.y - margin), width: Number(values.width), height: to.y - from.y - margin }
  fs.writeFileSync(picture, await page.screenshot({ clip }))
} finally {
  await browser.close()
}
