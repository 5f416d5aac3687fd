// Reports made by hand, for tests of the page: small pipelines whose parts do add up, drawn from a seed. No figure here is a
// measurement. See ../src/report.ts for what the fields mean.
import { head } from './fixtures/base.mjs'
import { crosscheck } from './fixtures/crosscheck.mjs'
import { diff, diffOfStages } from './fixtures/diff.mjs'
import { alone, defaults, factsOf, large, step, tooLarge } from './fixtures/step.mjs'
import { study, studyOfOrders, studyThatFailed } from './fixtures/study.mjs'
import { validation, validationOfNothing } from './fixtures/validation.mjs'

/// A FailureReport.
function failure() {
  return {
    ...head('failure', 'broken'),
    sentence:
      'broken.yaml:4:16: parallelism.tp: 12 does not divide the 64 attention heads; the nearest that does is 16\n' +
      '  tp: 12\n      ^~',
    exit_code: 2,
    facts: factsOf(defaults).slice(0, 2),
  }
}

/// Markup in names must stay text.
function hostile() {
  const report = step({ name: '</script><img src=x onerror=alert(1)> & "quotes"' })
  report.result.warnings = ['<b>bold</b>']
  return report
}

export const all = {
  step,
  large,
  tooLarge,
  alone,
  crosscheck,
  study,
  studyOfOrders,
  studyThatFailed,
  diff,
  diffOfStages,
  validation,
  validationOfNothing,
  failure,
  hostile,
}

/// The page with a report in it, as the binary fills it.
export function filled(page, report) {
  const empty = '<script type="application/json" id="report">{}</script>'
  const at = page.indexOf(empty)
  if (at < 0 || page.indexOf(empty, at + 1) >= 0) throw new Error('the page has not exactly one place for the report')
  return (
    page.slice(0, at) + empty.replace('{}', () => JSON.stringify(report).replaceAll('</', '<\\/')) + page.slice(at + empty.length)
  )
}
