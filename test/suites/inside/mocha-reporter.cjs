// A reporter of mocha: each test's end is a line at once, so that a run that dies still says how far it came.
const { appendFileSync } = require('node:fs')

const file = process.env.FIREBREAK_SUITE_RESULTS

module.exports = class LinesReporter {
  constructor(runner) {
    const write = (test, outcome, message) =>
      appendFileSync(file, `${JSON.stringify({ test: test.fullTitle(), outcome, message })}\n`)
    runner.on('pass', (test) => write(test, 'passed'))
    runner.on('fail', (test, error) => write(test, 'failed', String(error?.stack ?? error).slice(0, 2000)))
    runner.on('pending', (test) => write(test, 'skipped'))
    runner.on('end', () => appendFileSync(file, '{"end":true}\n'))
  }
}
