import { type Bench, interleaved, median, medianRatio, rounds, say } from '../harness/bench.ts'
import { contend, handoffs, type Stay } from './contend.ts'
import type { ContestantName } from './contestants.ts'
import { mean, semaphoreHandoff, type Table, waiters } from './table.ts'

const batches = rounds(6, 20)

/** How long does a lock lie idle between two holders, each of whom comes once? In one process and over four. */
export async function benchHandoff(bench: Bench, table: Table): Promise<void> {
  say('one process, 20 waiters')
  const inOne = (contestant: ContestantName) => () =>
    meanHandoff(table, contestant, (name) => contend(table.take[contestant], name, waiters))
  const one = await interleaved(rounds(3, 7), {
    firebreak: inOne('firebreak'),
    'redis-semaphore': inOne('redis-semaphore'),
  })
  // It polls every 200 ms: one round is enough to see where it stands.
  bench.report({ id: 'handoff-1-process-redlock', value: await inOne('redlock')(), unit: 'ms' })

  say('four processes, 5 waiters each')
  const inFour = (contestant: ContestantName) => () =>
    meanHandoff(table, contestant, (name) => table.runInFour(contestant, name))
  const four = await interleaved(rounds(3, 7), {
    firebreak: inFour('firebreak'),
    'firebreak-fair': inFour('firebreak-fair'),
    'redis-semaphore': inFour('redis-semaphore'),
  })

  for (const [name, values] of Object.entries(one)) {
    bench.report({ id: `handoff-1-process-${name}`, value: median(values), unit: 'ms' })
  }
  for (const [name, values] of Object.entries(four)) {
    bench.report({ id: `handoff-4-processes-${name}`, value: median(values), unit: 'ms' })
  }
  const of = 'mean hand-off'
  const to = semaphoreHandoff
  bench.report({
    id: 'handoff-1-process-vs-semaphore',
    ratio: medianRatio(one.firebreak, one['redis-semaphore']),
    of,
    to,
  })
  bench.report({
    id: 'handoff-4-processes-vs-semaphore',
    ratio: medianRatio(four.firebreak, four['redis-semaphore']),
    of,
    to,
  })
  bench.report({
    id: 'handoff-4-processes-fair-vs-semaphore',
    ratio: medianRatio(four['firebreak-fair'], four['redis-semaphore']),
    of: `${of} of the fair lock`,
    to,
  })
}

/** The mean over several batches; in each a first holder keeps the lock until all waiters have come. */
async function meanHandoff(
  table: Table,
  contestant: ContestantName,
  run: (name: string) => Promise<Stay[]>,
): Promise<number> {
  const gaps: number[] = []
  for (let batch = 0; batch < batches; batch++) {
    const name = table.newName(contestant)
    const release = await table.take[contestant](name)
    const running = run(name)
    await new Promise((resolve) => setTimeout(resolve, 30))
    await release()
    gaps.push(...handoffs(await running))
  }
  const meanMs = mean(gaps)
  say(`  ${contestant}: ${gaps.length} hand-offs, mean ${meanMs.toFixed(3)} ms`)
  return meanMs
}
