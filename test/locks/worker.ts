// A process that takes locks on its parent's orders and reports what happened, one JSON line for each event.
import { Locks } from '@firebreak/locks'
import { Redis } from 'ioredis'

interface Order {
  readonly do: 'contend' | 'hold' | 'unlock' | 'block' | 'alternate'
  readonly name: string
  readonly tasks?: number
  readonly rounds?: number
  readonly ms?: number
}

const [port, leaseMs] = process.argv.slice(2).map(Number) as [number, number]
const client = new Redis(port, { maxRetriesPerRequest: null, retryStrategy: (attempt) => Math.min(attempt * 20, 200) })
client.on('error', () => {})
const locks = new Locks(client, { leaseMs, waiterTtlMs: 300 })
locks.onLost(({ name, token, reason }) => say('lost', { name, token, reason }))

function say(event: string, fields: object = {}): void {
  process.send!({ event, pid: process.pid, at: Number(process.hrtime.bigint()) / 1e6, ...fields })
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

let held: Awaited<ReturnType<ReturnType<typeof locks.getLock>['lock']>> | undefined

const orders: Record<Order['do'], (order: Order) => Promise<void> | void> = {
  /** A number of tasks take the lock repeatedly and hold it for 1 ms, reporting to a guard outside Redis. */
  async contend({ name, tasks = 5, rounds = 10 }) {
    const task = async () => {
      for (let round = 0; round < rounds; round++) {
        const handle = await locks.getLock(name).lock()
        say('enter', { token: handle.token })
        await pause(1)
        say('leave', { token: handle.token, isHeld: handle.isHeld })
        await handle.unlock()
      }
    }
    await Promise.all(Array.from({ length: tasks }, task))
    say('contended')
  },
  async hold({ name }) {
    held = await locks.getLock(name).lock()
    say('held', { token: held.token })
  },
  async unlock() {
    say('unlocked', { result: await held!.unlock(), isHeld: held!.isHeld })
  },
  /** Blocks the event loop. */
  block({ ms = 0 }) {
    const end = performance.now() + ms
    while (performance.now() < end);
    say('resumed', { isHeld: held?.isHeld })
  },
  /** Lock/unlock pairs against another process; the longest wait is what counts. */
  async alternate({ name, rounds = 100 }) {
    let longestMs = 0
    for (let round = 0; round < rounds; round++) {
      const startedAt = performance.now()
      const handle = await locks.getLock(name).lock()
      longestMs = Math.max(longestMs, performance.now() - startedAt)
      await handle.unlock()
    }
    say('alternated', { longestMs })
  },
}

process.on('message', (order: Order) => void orders[order.do](order))
process.on('disconnect', () => process.exit(0))
client.once('ready', () => say('ready'))
