import { Locks } from '@firebreak/locks'
import { Redis } from 'ioredis'
import { Mutex } from 'redis-semaphore'
import Redlock from 'redlock'

/** The locks that are compared, each as its own documentation uses it; only waiting without an end is asked of all. */
export type ContestantName = 'firebreak' | 'firebreak-fair' | 'redis-semaphore' | 'redlock'

/** Takes the lock of a name and gives what releases it. */
export type Take = (name: string) => Promise<() => Promise<unknown>>

/** Every contestant over one connection of its own. */
export function openContestants(port: number): { take: Record<ContestantName, Take>; close(): Promise<void> } {
  const clients = Array.from({ length: 3 }, () => new Redis(port))
  const [ours, semaphores, redlocks] = clients as [Redis, Redis, Redis]
  const locks = new Locks(ours)
  const redlock = new Redlock([redlocks], { retryCount: -1 })
  return {
    take: {
      firebreak: async (name) => {
        const handle = await locks.getLock(name).lock()
        return () => handle.unlock()
      },
      'firebreak-fair': async (name) => {
        const handle = await locks.getFairLock(name).lock()
        return () => handle.unlock()
      },
      'redis-semaphore': async (name) => {
        const mutex = new Mutex(semaphores, name, { acquireTimeout: 600_000 })
        await mutex.acquire()
        return () => mutex.release()
      },
      redlock: async (name) => {
        const lock = await redlock.lock(name, 10_000)
        return () => lock.unlock()
      },
    },
    async close() {
      await locks.close()
      for (const client of clients) client.disconnect()
    },
  }
}
