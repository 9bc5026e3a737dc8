import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DrillResult } from '../packages/cli/src/drill/drill-run.ts'
import { Bench, rounds, say } from './harness/bench.ts'

/**
 * How long does it take from the moment a key becomes hot until nobody asks Redis for it any more?
 *
 * `firebreak drill` as people run it: four client processes, none over the threshold alone, a hub and a Redis of the drill's own.
 * Times are in milliseconds from the moment at which the reads of all together crossed the threshold. The README's figures are
 * these: `npm run bench -- all --report` writes them there.
 */
const bench = new Bench('drill')
const main = fileURLToPath(new URL('../packages/cli/src/main.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'firebreak-bench-drill-'))
const result = await drill(rounds(6, 20))
rmSync(folder, { recursive: true })

bench.report({ id: 'rounds', value: result.rounds, unit: 'rounds' })
const spreads = [
  ['detected', result.detectedMs],
  ['delivered', result.deliveredMs],
  ['served-from-memory', result.effectiveMs],
  ['write-seen', result.writeSeenMs],
  ['write-seen-uncached', result.writeSeenControlMs],
] as const
for (const [id, { p50, p99, max }] of spreads) {
  bench.report({ id: `${id}-p50`, value: p50, unit: 'ms' })
  bench.report({ id: `${id}-p99`, value: p99, unit: 'ms' })
  bench.report({ id: `${id}-max`, value: max, unit: 'ms' })
}
bench.report({ id: 'redis-gets-before', value: result.redisGetsPerSecond.before, unit: 'GET/s' })
bench.report({ id: 'redis-gets-after', value: result.redisGetsPerSecond.after, unit: 'GET/s' })
bench.report({ id: 'stale-reads', value: result.staleReads, unit: 'reads' })
bench.done({ clients: String(result.clients), threshold: String(result.threshold) })

async function drill(count: number): Promise<DrillResult> {
  // In a folder of its own, so that it does not drill on a `firebreak up` that happens to run.
  const { REDIS_URL: _, FIREBREAK_HUB: __, ...env } = process.env
  const args = [...process.execArgv, main, 'drill', '--rounds', String(count), '--json']
  const child = spawn(process.execPath, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => say(chunk.toString().trimEnd()))
  const code = await new Promise<number | null>((done) => child.on('close', done))
  if (code !== 0) throw new Error(`firebreak drill ended with code ${code}`)
  return JSON.parse(output) as DrillResult
}
