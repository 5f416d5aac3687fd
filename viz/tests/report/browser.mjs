// Opens a report from the disk and reads its charts back.
import { pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}

/// The page in a window of 1280 by 800, with all it complained about and asked the network for.
export async function open(browser, file, options = {}) {
  const page = await browser.newPage({
    viewport: { width: 1280, height: 800 },
    colorScheme: 'light',
    reducedMotion: 'reduce',
    ...options,
  })
  const complaints = []
  const requests = []
  page.on('pageerror', error => complaints.push(error.message))
  page.on('console', message => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('dialog', async dialog => {
    complaints.push(`dialog: ${dialog.message()}`)
    await dialog.dismiss()
  })
  const url = pathToFileURL(file).href
  page.on('request', request => {
    const itself = request.url() === url || request.url().startsWith('data:') || request.url().startsWith('blob:')
    if (!itself) requests.push(request.url())
  })
  const refused = [] // by the page's own policy
  page.on('requestfailed', request => {
    if (request.failure().errorText === 'csp') refused.push(request.url())
  })
  const began = Date.now()
  await page.goto(url)
  await page.waitForSelector('main, body > .nothing')
  await page.waitForFunction(() => !document.querySelector('[aria-busy]')) // all is unpacked
  await page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve))))
  return { page, complaints, requests, refused, opened_ms: Date.now() - began }
}

/// The marks of a chart: their data-* and, of rectangles and circles, where they are in the drawing's own units.
export function marks(page, chart) {
  return page.evaluate(
    id =>
      [...document.querySelectorAll(`[data-chart="${id}"] .mark`)].map(mark => ({
        ...mark.dataset,
        tag: mark.tagName,
        d: mark.getAttribute('d'),
        box: (box => ({ x: box.x, y: box.y, width: box.width, height: box.height }))(mark.getBoundingClientRect()),
        track: (box => box && { x: box.x, width: box.width })(mark.parentElement?.getBoundingClientRect()),
        ...Object.fromEntries(
          ['x', 'y', 'width', 'height', 'cx', 'cy']
            .filter(name => mark.hasAttribute(name))
            .map(name => [name, Number(mark.getAttribute(name))])
        ),
        chart: (({ xScale, yScale, scale, panel }) => ({ xScale, yScale, scale, panel }))(mark.closest('[data-chart]').dataset),
      })),
    chart
  )
}

/// The rows of a table, in the order shown: their data-* and the data-value of each cell.
export function rows(page, table) {
  return page.evaluate(
    id =>
      [...document.querySelectorAll(`[data-table="${id}"] tbody tr`)].map(row => ({
        ...row.dataset,
        cells: [...row.children].map(cell => cell.dataset.value ?? null),
        text: row.innerText,
      })),
    table
  )
}

/// What a scale noted on a drawing says of a place.
export function valueAt(noted, place) {
  const {
    kind,
    domain: [low, high],
    range: [from, to],
  } = JSON.parse(noted)
  const part = (place - from) / (to - from)
  return kind === 'log' ? low * (high / low) ** part : low + part * (high - low)
}

export function isEmpty(page, id) {
  return page.evaluate(
    name =>
      document.querySelector(`[data-empty="${name}"]`) !== null && document.querySelector(`[data-chart="${name}"]`) === null,
    id
  )
}

/// Pairs of labels in a drawing that touch, and labels that leave the page.
export function clumsyLabels(page) {
  return page.evaluate(() => {
    const found = []
    for (const svg of document.querySelectorAll('svg.chart')) {
      const labels = [...svg.querySelectorAll('text')]
        .map(text => ({ text: text.textContent, box: text.getBoundingClientRect() }))
        .filter(({ box }) => box.width > 0)
      const name = svg.dataset.chart
      labels.forEach((one, at) => {
        if (one.box.left < 0 || one.box.right > document.documentElement.clientWidth)
          found.push(`${name}: "${one.text}" leaves the page`)
        for (const other of labels.slice(at + 1)) {
          const across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left)
          const down = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top)
          if (across > 0.5 && down > 2.5) found.push(`${name}: "${one.text}" touches "${other.text}"`)
        }
      })
    }
    return found
  })
}
