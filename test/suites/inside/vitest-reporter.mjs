// A reporter of vitest: each test's end is a line at once, so that a run that is ended still says how far it came.
import { appendFileSync } from 'node:fs'
import { basename } from 'node:path'

const file = process.env['FIREBREAK_SUITE_RESULTS']

// biome-ignore lint/style/noDefaultExport: vitest takes a reporter from there.
export default class LinesReporter {
  /** @param {import('vitest/node').TestCase} test */
  onTestCaseResult(test) {
    const { state, errors } = test.result()
    const name = `${basename(test.module.moduleId).replace(/\.test\.\w+$/, '')}: ${test.fullName.replaceAll(' > ', ' ')}`
    const outcome = state === 'passed' || state === 'failed' ? state : 'skipped'
    appendFileSync(file, `${JSON.stringify({ test: name, outcome, message: errors?.[0]?.message })}\n`)
  }
}
