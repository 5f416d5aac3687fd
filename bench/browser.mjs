// The rows of bench/browser.sh for pages that Tandem wrote: node bench/browser.mjs RUNS a.html b.html
import path from 'node:path'
import { panning } from '../viz/tests/frames.mjs'
import { launch, open } from '../viz/tests/report/browser.mjs'

const shares = [0.9, 0.3, 0.02] // of the step in view
const frames = 60

const quantile = (values, share) => [...values].sort((a, b) => a - b)[Math.floor(values.length * share)]
const row = (name, values) => console.log(name.padEnd(30) + values.map(value => String(value).padStart(14)).join(''))

/// Of all of Chromium's processes.
async function processorTime_ms(browser) {
  const session = await browser.newBrowserCDPSession()
  const { processInfo } = await session.send('SystemInfo.getProcessInfo')
  await session.detach()
  return processInfo.reduce((sum, { cpuTime }) => sum + 1000 * cpuTime, 0)
}

/// The first share of a step in view, panned for so many frames.
async function pan(browser, page, share) {
  const container = await page.$('[data-chart=timeline]')
  await container.scrollIntoViewIfNeeded()
  await container.evaluate(async (element, part) => {
    const timeline = await element.timeline
    timeline.show(0, Infinity)
    timeline.show(0, part * timeline.visible().end_s)
  }, share)
  const before_ms = await processorTime_ms(browser)
  const { intervals_ms, draws_ms } = await container.evaluate(panning, frames)
  return { intervals_ms, draws_ms, processor_ms: ((await processorTime_ms(browser)) - before_ms) / intervals_ms.length }
}

async function measure(browser, runs, file) {
  const opened_ms = []
  const panned = shares.map(() => [])
  for (let run = 0; run < runs; ++run) {
    const opened = await open(browser, file)
    opened_ms.push(opened.opened_ms)
    for (const [i, share] of shares.entries()) panned[i].push(await pan(browser, opened.page, share))
    await opened.page.close()
  }
  const name = path.basename(file, '.html')
  for (const [i, share] of shares.entries()) {
    const all = key => panned[i].flatMap(one => one[key])
    row(`${name}, ${share} in view`, [
      Math.round(quantile(opened_ms, 0.5)),
      quantile(all('intervals_ms'), 0.5).toFixed(1),
      quantile(all('intervals_ms'), 0.95).toFixed(1),
      quantile(all('draws_ms'), 0.5).toFixed(1),
      quantile(panned[i].map(({ processor_ms }) => processor_ms), 0.5).toFixed(1),
    ])
  }
}

const [runs, ...files] = process.argv.slice(2)
const browser = await launch()
try {
  row('milliseconds', ['to open', 'a frame', '95th pct.', 'drawing', 'CPU a frame'])
  for (const file of files) await measure(browser, Number(runs), path.resolve(file))
} finally {
  await browser.close()
}
