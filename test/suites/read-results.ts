import type { RunResults, TestEnd } from './suite.ts'

/** Tests by name; a repeated name gets a number, in the order of the run. */
export function byName(ends: Iterable<readonly [name: string, end: TestEnd]>): RunResults {
  const results = new Map<string, TestEnd>()
  for (const [name, end] of ends) {
    let unique = name
    for (let number = 2; results.has(unique); number++) unique = `${name} (${number})`
    results.set(unique, end)
  }
  return results
}

/** One JSON object a line, as our reporters for mocha, vitest and `node --test` write them. */
export function readLines(text: string): RunResults {
  const lines = text.split('\n').filter((line) => line.startsWith('{"test"'))
  return byName(
    lines.map((line) => {
      const { test, ...end } = JSON.parse(line) as TestEnd & { test: string }
      return [test, end] as const
    }),
  )
}

/** Our reporters' last line, which a run that is ended or dies does not write. */
export function hasLastLine(text: string): boolean {
  return text.endsWith('{"end":true}\n')
}

/** What hiredis prints: `#07 Can parse …: PASSED`. */
export function readHiredis(text: string): RunResults {
  const found = [...text.matchAll(/^#\d+ (.*?): (?:\x1b\[[\d;]*m)*(PASSED|FAILED|SKIPPED)/gm)]
  return byName(found.map(([, name, word]) => [name!, { outcome: word!.toLowerCase() as TestEnd['outcome'] }] as const))
}

/** What Redis' own suite prints: `[ok]: name (3 ms)`, `[err]: name in tests/unit/…`. */
export function readTcl(text: string): RunResults {
  const plain = text.replace(/\x1b\[[\d;]*m/g, '')
  const found = [...plain.matchAll(/^\[(ok|err|exception|skip|ignore)\]: (.*)$/gm)]
  return byName(
    found.map(([, word, rest]) => {
      const name = rest!.replace(/ \(\d+ ms\)$/, '').replace(/ in tests\/.*$/, '')
      const outcome = word === 'ok' ? 'passed' : word === 'err' || word === 'exception' ? 'failed' : 'skipped'
      return [name, { outcome, ...(outcome === 'failed' && { message: rest! }) }] as const
    }),
  )
}

/** JUnit's XML, as pytest writes it. */
export function readJunit(text: string): RunResults {
  const cases = [...text.matchAll(/<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)]
  return byName(
    cases.map(([, attributes, body = '']) => {
      const of = (name: string) => attributes!.match(new RegExp(`(?:^| )${name}="([^"]*)"`))?.[1] ?? ''
      const fault = body.match(/<(?:failure|error) message="([^"]*)"/)
      const outcome = fault !== null ? 'failed' : body.includes('<skipped') ? 'skipped' : 'passed'
      return [`${of('classname')} ${of('name')}`, { outcome, message: fault?.[1] }] as const
    }),
  )
}
