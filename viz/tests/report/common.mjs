// What every page must do, whatever it reports.
import { clumsyLabels } from './browser.mjs'

export async function checkPage({ page, complaints, requests }, report, expect) {
  expect.same('no complaints in the console', complaints, [])
  expect.same('no network requests', requests, [])
  expect.same('the title names the run', await page.title(), `${report.title} · Tandem`)
  expect.same('the head names the run', await page.textContent('h1'), report.title)
  expect.same('the foot has the command', await page.textContent('footer code'), report.command)
  expect.same('labels touch nothing and stay on the page', await clumsyLabels(page), [])
  expect.ok(
    'nothing to scroll to the right',
    await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth)
  )
  const empty = await page.evaluate(() =>
    [...document.querySelectorAll('[data-chart]:not([data-chart=timeline])')]
      .filter(chart => chart.querySelector('.mark') === null)
      .map(chart => chart.dataset.chart)
  )
  expect.same('every chart has marks', empty, [])
  const broken = await page.evaluate(() =>
    [...document.querySelectorAll('[data-chart] *')]
      .filter(element => element.getAttributeNames().some(name => /NaN|Infinity|undefined/.test(element.getAttribute(name))))
      .map(element => element.outerHTML.slice(0, 200))
  )
  expect.same('no broken attribute in a chart', broken.slice(0, 3), [])
  const words = await page.evaluate(() => document.body.innerText.match(/.*(NaN|undefined|\[object|Infinity).*/)?.[0] ?? null)
  expect.same('no broken words', words, null)
}

export async function checkTheme({ page }, expect) {
  const shown = () =>
    page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor])
  const [before, light] = await shown()
  expect.same('the system asks for light', before, 'light')
  await page.click('button.theme')
  const [after, dark] = await shown()
  expect.same('the button makes it dark', after, 'dark')
  expect.ok('the background changes', light !== dark, light)
  await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')))
  expect.same('paper is light', (await shown())[0], 'light')
  await page.evaluate(() => window.dispatchEvent(new Event('afterprint')))
  expect.same('the screen is dark again', (await shown())[0], 'dark')
  await page.keyboard.press('t')
  expect.same('t makes it light', (await shown())[0], 'light')
}

export async function checkKeyboard({ page }, expect) {
  await page.reload() // Tab starts anew
  await page.waitForSelector('main')
  const focused = () =>
    page.evaluate(() => ({
      class: document.activeElement.className,
      id: document.activeElement.id,
      href: document.activeElement.getAttribute('href'),
      outlined: getComputedStyle(document.activeElement).outlineStyle !== 'none',
      seen: document.activeElement.getBoundingClientRect().left >= 0,
    }))
  await page.keyboard.press('Tab')
  const first = await focused()
  expect.same('Tab starts at the skip link', first.class, 'skip')
  expect.ok('which then is seen', first.seen)
  await page.keyboard.press('Tab')
  const second = await focused()
  expect.same('then comes the first chapter', second.href, '#chapter-1')
  expect.ok('the focus is seen', second.outlined)

  const chapters = await page.locator('.chapter').count()
  for (let chapter = 1; chapter <= chapters; ++chapter) {
    await page.keyboard.press(String(chapter))
    expect.same(`${chapter} goes to its chapter`, (await focused()).id, `chapter-${chapter}`)
    const top = await page.evaluate(at => document.getElementById(`chapter-${at}`).getBoundingClientRect().top, chapter)
    const end = await page.evaluate(() => window.scrollY + window.innerHeight >= document.documentElement.scrollHeight - 2)
    expect.ok(`${chapter} brings it to the top`, end || (top > -2 && top < 120), top)
  }

  const ids = await page.evaluate(() =>
    [...document.querySelectorAll('.chart[data-chart]')]
      .filter(chart => chart.matches('[tabindex="0"]'))
      .map(chart => chart.dataset.chart)
  )
  for (const id of new Set(ids)) {
    await page.locator(`.chart[data-chart="${id}"]`).first().focus()
    await page.keyboard.press('ArrowRight')
    const tip = await page.evaluate(() => {
      const box = document.querySelector('.tip')
      return box.hidden ? '' : box.innerText
    })
    const steps = await page.evaluate(name => document.querySelector(`.chart[data-chart="${name}"] .mark.current`) !== null, id)
    expect.ok(`arrow keys walk through ${id}`, !steps || tip.length > 0, tip)
    await page.keyboard.press('Escape')
  }
}

/// Each head of a table sorts it, both ways.
export async function checkSorting({ page }, table, expect) {
  const heads = page.locator(`[data-table="${table}"] thead button`)
  for (let column = 0; column < (await heads.count()); ++column) {
    for (let time = 0; time < 2; ++time) {
      await heads.nth(column).click()
      const { direction, values } = await page.evaluate(
        ([id, at]) => ({
          direction: document.querySelectorAll(`[data-table="${id}"] thead th`)[at].getAttribute('aria-sort'),
          values: [...document.querySelectorAll(`[data-table="${id}"] tbody tr`)].map(
            row => row.children[at].dataset.value ?? null
          ),
        }),
        [table, column]
      )
      const given = values.filter(value => value !== null)
      const numeric = given.every(value => Number.isFinite(Number(value)))
      const sign = direction === 'ascending' ? 1 : -1
      const ordered = given.every(
        (value, at) =>
          at === 0 ||
          sign *
            (numeric ? Number(value) - Number(given[at - 1]) : value.localeCompare(given[at - 1], 'en', { numeric: true })) >=
            0
      )
      expect.ok(
        `${table} sorts by column ${column}, ${direction}`,
        ordered && (direction === 'ascending' || direction === 'descending'),
        values.slice(0, 5).join(' ')
      )
      expect.ok(
        `${table}: what is missing comes last`,
        values.slice(given.length).every(value => value === null)
      )
    }
  }
}

export async function checkFacts({ page }, facts, expect) {
  const shown = await page.evaluate(() =>
    [...document.querySelectorAll('.facts > div')].map(group => ({
      name: group.querySelector('h3').textContent,
      facts: [...group.querySelectorAll('dt')].map(name => [name.textContent, name.nextElementSibling.textContent]),
    }))
  )
  expect.same(
    'the facts',
    shown,
    facts.filter(group => group.facts.length > 0)
  )
}

export async function checkFigure({ page }, name, value, expect) {
  expect.same(
    `the figure ${name}`,
    await page.evaluate(id => document.querySelector(`[data-figure="${id}"]`)?.dataset.value ?? null, name),
    String(value)
  )
}

/// Ranked bars have the values, and lengths that go with them.
export function checkBars(id, bars, expected, expect) {
  expect.sameNumbers(
    `${id} has the values`,
    bars.map(({ value }) => value),
    expected
  )
  const scale = Number(bars[0]?.chart.scale)
  for (const { value, box, track, name } of bars) {
    if (track.width === 0 || box.width === 0) continue // waits behind a button
    expect.near(`${id}: the length of ${name}`, box.width, Math.max(1, (Math.abs(Number(value)) / scale) * track.width), 1)
  }
}
