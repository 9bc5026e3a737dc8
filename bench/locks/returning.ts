import { type Bench, interleaved, median, medianRatio, rounds, say } from '../harness/bench.ts'
import { contendReturning, handoffs } from './contend.ts'
import type { ContestantName } from './contestants.ts'
import { mean, semaphoreHandoff, type Table, waiters } from './table.ts'

const returningMs = rounds(400, 1500)

/** The same with tasks that come back at once: see contend.ts. */
export async function benchReturning(bench: Bench, table: Table): Promise<void> {
  say('one process, 20 tasks that come back at once')
  const sameTaskShares: number[] = []
  const inOne = (contestant: ContestantName) => async () => {
    const name = table.newName(contestant)
    const { stays, sameTask } = await contendReturning(table.take[contestant], name, waiters, returningMs)
    if (contestant === 'redis-semaphore') sameTaskShares.push(sameTask / stays.length)
    return mean(handoffs(stays))
  }
  const one = await interleaved(rounds(3, 7), {
    firebreak: inOne('firebreak'),
    'redis-semaphore': inOne('redis-semaphore'),
  })

  say('four processes, 5 tasks each that come back at once')
  const inFour = (contestant: ContestantName) => async () =>
    mean(handoffs(await table.runInFour(contestant, table.newName(contestant), { returningMs })))
  const four = await interleaved(rounds(3, 7), {
    firebreak: inFour('firebreak'),
    'firebreak-fair': inFour('firebreak-fair'),
    'redis-semaphore': inFour('redis-semaphore'),
  })

  const of = 'mean hand-off, tasks come back at once'
  const to = semaphoreHandoff
  bench.report({
    id: 'returning-1-process-vs-semaphore',
    ratio: medianRatio(one.firebreak, one['redis-semaphore']),
    of,
    to,
    note: `redis-semaphore's releaser retook it itself in ${Math.round(median(sameTaskShares) * 100)} % of cases`,
  })
  bench.report({
    id: 'returning-4-processes-vs-semaphore',
    ratio: medianRatio(four.firebreak, four['redis-semaphore']),
    of,
    to,
  })
  bench.report({
    id: 'returning-4-processes-fair-vs-semaphore',
    ratio: medianRatio(four['firebreak-fair'], four['redis-semaphore']),
    of: `${of}, fair lock`,
    to,
  })
}
