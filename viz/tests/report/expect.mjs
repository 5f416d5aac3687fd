// Counts what holds and what does not. `expect.scope` names what is being looked at.
export class Expect {
  passed = 0
  failures = []
  constructor(scope, quiet = false) {
    this.scope = scope
    this.quiet = quiet
  }

  ok(what, holds, detail = '') {
    if (holds) return void ++this.passed
    this.failures.push(what)
    if (!this.quiet) console.error(`FAILED: ${this.scope}: ${what}${detail === '' ? '' : `: ${detail}`}`)
  }

  same(what, actual, expected) {
    const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)]
    this.ok(what, a === b, `${a?.slice(0, 300)}, expected ${b?.slice(0, 300)}`)
  }

  near(what, actual, expected, tolerance) {
    this.ok(what, Math.abs(actual - expected) <= tolerance, `${actual}, expected ${expected}`)
  }

  /// Numbers that were written as text and read back are the same to the last bit. Unordered.
  sameNumbers(what, texts, numbers) {
    const sorted = list => list.map(Number).sort((a, b) => a - b)
    this.same(what, sorted(texts), sorted(numbers))
  }
}
