// Opens reports in Chromium and compares every chart with the JSON in the page.
//
//     node viz/tests/report.mjs                      the reports of fixtures.mjs, in viz/report.html
//     node viz/tests/report.mjs a.html b.html        reports that Tandem wrote
//
// Chromium is looked for at /usr/bin/chromium, or where the variable CHROMIUM says.
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { all, filled } from './fixtures.mjs'
import { launch, open } from './report/browser.mjs'
import { checkKeyboard, checkPage, checkTheme } from './report/common.mjs'
import { checkCrosscheck } from './report/crosscheck.mjs'
import { checkDiff } from './report/diff.mjs'
import { Expect } from './report/expect.mjs'
import { checkFailure } from './report/failure.mjs'
import { checkStep } from './report/step.mjs'
import { checkStudy } from './report/study.mjs'
import { checkValidation } from './report/validation.mjs'

const checks = {
  step: checkStep,
  crosscheck: checkCrosscheck,
  study: checkStudy,
  diff: checkDiff,
  validation: checkValidation,
  failure: checkFailure,
}
const largestPage = 700_000 // bytes, without a report

async function check(browser, file, name) {
  const expect = new Expect(name)
  const opened = await open(browser, file)
  const report = await opened.page.evaluate(() => JSON.parse(document.getElementById('report').textContent))
  await checkPage(opened, report, expect)
  await checks[report.kind](opened, report, expect)
  await checkTheme(opened, expect)
  await checkKeyboard(opened, expect)
  // Names of fixtures and of reports that ./dev writes would set this, if one became an element or a script.
  expect.same('no name ran', await opened.page.evaluate(() => window.ran ?? null), null)
  expect.same('no complaints meanwhile', [opened.complaints, opened.requests], [[], []])
  await opened.page.close()
  const size = `${(fs.statSync(file).size / 1e6).toFixed(2)} MB`
  console.log(`${name}: ${size}, opened in ${opened.opened_ms} ms, ${expect.passed} passed, ${expect.failures.length} failed`)
  return expect
}

/// The comparison itself must be able to fail: a page against the JSON of another run.
async function checkTheCheck(browser, file) {
  const wrong = new Expect('a page against another run', true)
  const opened = await open(browser, file)
  const other = all.step({ name: 'other', stages: 4, perMicroBatch: 4.3e9, hop_s: 0.5e-3 })
  await checkStep(opened, other, wrong)
  await opened.page.close()
  const expect = new Expect('the check')
  for (const what of [
    'the figure mfu',
    'the range has the bounds',
    'step-parts has the values',
    'the parts of stage 0',
    'the kinds',
    'the communication',
    'the peak of stage 0',
    'the top of stage 0',
    'the utilisation of nvlink',
    'path-kinds has the values',
    'blame has the values',
  ]) {
    expect.ok(`finds that "${what}" differs`, wrong.failures.includes(what))
  }
  return expect
}

/// A page into which something got past the escapes: it runs nothing of that, nor asks the network for anything.
async function checkForeignScript(browser, file) {
  const expect = new Expect('a foreign script')
  const foreign = path.join(path.dirname(file), 'foreign.html')
  const intruders =
    '<script>window.ran = 1</script><img src="x:" onerror="window.ran = 2"><img src="https://example.org/">' +
    '<script src="https://example.org/x.js"></script><button onclick="window.ran = 3">here</button>'
  fs.writeFileSync(foreign, fs.readFileSync(file, 'utf8').replace('<body>', () => `<body>${intruders}`))
  const opened = await open(browser, foreign)
  await opened.page.click('button >> text=here')
  expect.same('nothing ran', await opened.page.evaluate(() => window.ran ?? null), null)
  expect.ok('the page would load something', opened.requests.length > 0)
  expect.same('all of it is refused', opened.refused, opened.requests)
  expect.ok('the browser says why', opened.complaints.some(text => text.includes('Content Security Policy')))
  await opened.page.close()
  return expect
}

async function main() {
  const given = process.argv.slice(2)
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'report-'))
  const browser = await launch()
  const results = []
  try {
    if (given.length > 0) {
      for (const file of given) results.push(await check(browser, path.resolve(file), path.basename(file)))
    } else {
      const built = fileURLToPath(new URL('../report.html', import.meta.url))
      const page = fs.readFileSync(built, 'utf8')
      const size = new Expect('the page')
      size.ok(`is under ${largestPage} bytes`, page.length < largestPage, page.length)
      size.ok(
        'refers to nothing outside',
        !/<(script|link|img)[^>]*(src|href)="?(?!data:)[^">]/.test(page.replace(/<link rel="icon" href="data:,">/, ''))
      )
      results.push(size)
      for (const [name, make] of Object.entries(all)) {
        const file = path.join(folder, `${name}.html`)
        fs.writeFileSync(file, filled(page, make()))
        results.push(await check(browser, file, name))
      }
      results.push(await checkTheCheck(browser, path.join(folder, 'step.html')))
      results.push(await checkForeignScript(browser, path.join(folder, 'step.html')))
    }
  } finally {
    await browser.close()
    fs.rmSync(folder, { recursive: true })
  }
  const passed = results.reduce((sum, result) => sum + result.passed, 0)
  const failed = results.reduce((sum, result) => sum + result.failures.length, 0)
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed ? 1 : 0
}

await main()
