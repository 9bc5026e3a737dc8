// A reporter of vitest: each test's end is a line at once, so that a run that is ended still says how far it came.
import { appendFileSync } from 'node:fs'
import { basename } from 'node:path'

const file = process.env['FIREBREAK_SUITE_RESULTS']

const fileOf = ({ moduleId }) => basename(moduleId).replace(/\.test\.\w+$/, '')

// biome-ignore lint/style/noDefaultExport: vitest takes a reporter from there.
export default class LinesReporter {
  /** @param {import('vitest/node').TestCase} test */
  onTestCaseResult(test) {
    const { state, errors } = test.result()
    const name = `${fileOf(test.module)}: ${test.fullName.replaceAll(' > ', ' ')}`
    const outcome = state === 'passed' || state === 'failed' ? state : 'skipped'
    appendFileSync(file, `${JSON.stringify({ test: name, outcome, message: errors?.[0]?.message })}\n`)
  }

  /** @param {import('vitest/node').TestModule} module */
  onTestModuleEnd(module) {
    // A file that cannot be loaded has no tests.
    for (const { message } of module.errors())
      appendFileSync(file, `${JSON.stringify({ test: `${fileOf(module)}: the file`, outcome: 'failed', message })}\n`)
  }

  onTestRunEnd() {
    appendFileSync(file, '{"end":true}\n')
  }
}
