// `npm run fuzz [-- TARGET …] [--seconds N] [--seed N] [--input BASE64] [--keep] [--json]`: a minute for each target, or N seconds
// for all together where --together stands. --keep writes the inputs that reached something new into the corpus.
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { readCorpus, writeCorpus } from './corpus.ts'
import { BlockCoverage } from './coverage.ts'
import { fuzzTarget } from './fuzz-run.ts'
import { violationOf } from './law.ts'
import type { FuzzTarget } from './target.ts'
import { Watchdog } from './watchdog.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
    /** The seconds are for all targets together. */
    together: { type: 'boolean', default: false },
    input: { type: 'string' },
    keep: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const say = (line: string) => process.stderr.write(`${line}\n`)
const seed = Number(values.seed)
const seconds = Number(values.seconds)

// Before the targets are imported: only code that is compiled from here on is counted block by block.
const coverage = new BlockCoverage()
coverage.start()
const { targets: every, selfCheckTarget } = await import('./targets/index.ts')
const all = [...every, selfCheckTarget]
const unknown = positionals.find((name) => !all.some((target) => target.name === name))
if (unknown !== undefined || !Number.isSafeInteger(seed) || !(seconds > 0)) {
  say('usage: npm run fuzz -- [TARGET …] [--seconds 60] [--together] [--seed 1] [--input BASE64] [--keep] [--json]')
  say(`targets: ${every.map(({ name }) => name).join(', ')}`)
  process.exit(2)
}
const targets = positionals.length === 0 ? every : all.filter(({ name }) => positionals.includes(name))
const faults = JSON.parse(readFileSync(new URL('faults.json', import.meta.url), 'utf8')) as {
  readonly target: string
  readonly input: string
}[]

const replay = (target: FuzzTarget, base64: string) => `again: npm run fuzz -- ${target.name} --input ${base64 || "''"}`

/** Runs one input of a target; true if it keeps the rules. */
async function runOne(target: FuzzTarget, input: Buffer): Promise<boolean> {
  await target.open?.()
  const violation = await violationOf(target, input)
  await target.close?.()
  say(`${target.name}: ${violation === undefined ? 'the law holds' : `FAILED: ${violation.message}`}`)
  return violation === undefined
}

async function runAll(): Promise<number> {
  let failures = 0
  for (const target of targets) {
    const watchdog = new Watchdog((base64) => replay(target, base64))
    await target.open?.()
    const result = await fuzzTarget(target, {
      seed,
      forMs: (seconds * 1000) / (values.together ? targets.length : 1),
      leastInputs: 24,
      faults: faults.filter((fault) => fault.target === target.name).map(({ input }) => Buffer.from(input, 'base64')),
      corpus: readCorpus(target.name),
      sifts: values.keep,
      coverage,
      onInput: (input) => watchdog.started(input),
    })
    await target.close?.()
    await watchdog.close()
    const { inputs, ms, kept, blocks, failure } = result
    const perSecond = Math.round((inputs / ms) * 1000)
    say(
      `${target.name.padEnd(14)} ${String(inputs).padStart(8)} inputs ${String(perSecond).padStart(7)} /s ${String(kept).padStart(5)} kept ${String(blocks).padStart(5)} blocks`,
    )
    if (values.json)
      process.stdout.write(`${JSON.stringify({ target: target.name, inputs, perSecond, kept, blocks })}\n`)
    if (failure === undefined) {
      if (values.keep) writeCorpus(target.name, result.reaching)
      continue
    }
    failures++
    say(`FAILED: ${target.name}, seed ${seed}: ${failure.message}`)
    say(replay(target, failure.input.toString('base64')))
  }
  return failures
}

if (values.input !== undefined) {
  const isKept = await runOne(targets[0]!, Buffer.from(values.input, 'base64'))
  process.exit(isKept ? 0 : 1)
}
process.exit((await runAll()) > 0 ? 1 : 0)
