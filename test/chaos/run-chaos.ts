// `npm run chaos -- --seed N [--minutes M] [--json]`: breaks real processes for a while and says what did not hold.
import { parseArgs } from 'node:util'
import { runChaos } from './chaos.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '30' },
    json: { type: 'boolean', default: false },
  },
})
const [seed, minutes] = [Number(values.seed), Number(values.minutes)]
if (!Number.isSafeInteger(seed) || !(minutes > 0)) {
  process.stderr.write('usage: npm run chaos -- --seed N [--minutes M] [--json]\n')
  process.exit(2)
}
const say = (line: string) => process.stderr.write(`${line}\n`)
const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
const { kinds, violations, ...figures } = await runChaos({
  seed,
  forMs: minutes * 60_000,
  onFault: (atMs, name, forMs) => say(`${seconds(atMs).padStart(9)}  ${name} for ${seconds(forMs)}`),
})
for (const [name, times] of Object.entries(kinds).sort()) say(`${String(times).padStart(4)}  ${name}`)
for (const { oracle, what, faults } of violations)
  say(`FAILED: ${oracle}: ${what}; meanwhile: ${faults.join('; ') || 'nothing'}`)
say(
  `seed ${seed}: ${figures.faults} faults, ${figures.calls} calls, ${figures.failedCalls} failed as a bare client’s would,`,
)
say(
  `agreed after ${figures.agreedMs} ms, ${violations.length} failures; again: npm run chaos -- --seed ${seed} --minutes ${minutes}`,
)
if (values.json) process.stdout.write(`${JSON.stringify({ seed, minutes, ...figures, failures: violations.length })}\n`)
process.exit(violations.length > 0 ? 1 : 0)
