// A page of a run that failed.
import { checkFacts, checkFigure } from './common.mjs'

export async function checkFailure(opened, report, expect) {
  const said = await opened.page.evaluate(() =>
    [...document.querySelectorAll('.banner > div, .banner pre')].map(element => element.textContent).join('\n')
  )
  for (const line of report.sentence.split('\n').filter(Boolean)) expect.ok('the sentence is there', said.includes(line), said)
  await checkFigure(opened, 'exit_code', report.exit_code, expect)
  await checkFacts(opened, report.facts, expect)
}
