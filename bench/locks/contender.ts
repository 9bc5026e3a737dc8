// One of several processes that contend for a lock: told by its parent what to take, it answers with its stays.
import { contend } from './contend.ts'
import { type ContestantName, openContestants } from './contestants.ts'

const { take } = openContestants(Number(process.argv[2]))

process.on('message', async (order: { contestant: ContestantName; name: string; waiters: number }) => {
  process.send!(await contend(take[order.contestant], order.name, order.waiters))
})
process.on('disconnect', () => process.exit(0))
process.send!('ready')
