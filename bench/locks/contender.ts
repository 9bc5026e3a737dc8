// One of several processes that contend for a lock: told by its parent what to take, it answers with its stays.
import { contend, contendReturning } from './contend.ts'
import { type ContestantName, openContestants } from './contestants.ts'

const { take } = openContestants(Number(process.argv[2]))

/** With `returningMs`, tasks come back for so long. */
interface Order {
  readonly contestant: ContestantName
  readonly name: string
  readonly waiters: number
  readonly returningMs?: number
}

process.on('message', async ({ contestant, name, waiters, returningMs }: Order) => {
  const stays =
    returningMs === undefined
      ? await contend(take[contestant], name, waiters)
      : (await contendReturning(take[contestant], name, waiters, returningMs)).stays
  process.send!(stays)
})
process.on('disconnect', () => process.exit(0))
process.send!('ready')
