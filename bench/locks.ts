// How long does a lock take when it is free, and how long does it lie idle between two holders? `--only=NAME` runs one
// part: uncontended, handoff, returning.
import { readFileSync } from 'node:fs'
import { startRedis } from '@firebreak/testkit'
import { Bench } from './harness/bench.ts'
import { benchHandoff } from './locks/handoff.ts'
import { benchReturning } from './locks/returning.ts'
import { Table } from './locks/table.ts'
import { benchUncontended } from './locks/uncontended.ts'

const parts: Record<string, (bench: Bench, table: Table) => Promise<void>> = {
  uncontended: (bench, { port, take }) => benchUncontended(bench, port, take),
  handoff: benchHandoff,
  returning: benchReturning,
}
const only = process.argv.find((flag) => flag.startsWith('--only='))?.slice('--only='.length)

const bench = new Bench('locks')
const server = await startRedis()
const table = new Table(server.port)
for (const [name, part] of Object.entries(parts)) if (only === undefined || only === name) await part(bench, table)

function version(name: string): string {
  const file = readFileSync(new URL(`../node_modules/${name}/package.json`, import.meta.url), 'utf8')
  return (JSON.parse(file) as { version: string }).version
}
bench.done({
  redis: (await server.cli('INFO', 'server')).match(/redis_version:(\S+)/)?.[1] ?? 'unknown',
  ioredis: version('ioredis'),
  'redis-semaphore': version('redis-semaphore'),
  redlock: version('redlock'),
})
await table.close()
await server.stop()
