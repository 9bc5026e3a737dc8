import type { Fleet } from '../fleet/fleet.ts'
import { versioned } from '../fleet/keys.ts'
import { BrokenLaw } from './laws.ts'

const everyMs = 100
/** An elected process asks again within a second, and learns then that another is elected. */
const overlapMs = 1300
/** An election is forgotten after 3 s, and a process whose connection has died learns of it by its lease. */
const calmMs = 4500
const copied = versioned.filter((key) => key.startsWith('copy:'))

/** While it runs: of the processes that nothing disturbs, one follows a key that has copies, and is told of its changes. */
export function watchElections(fleet: Fleet): void {
  const sinceMs = new Map<string, number>()
  const untoldMs = new Map<string, number>()
  const look = (): void => {
    const now = fleet.world.elapsedMs
    for (const { process, client, cluster } of fleet.lives) {
      const isTold = cluster.watcherStatuses().some(({ kind, state }) => kind === 'tracking' && state === 'live')
      for (const key of copied) {
        const id = `${process.name} ${key}`
        const isElected = process.isAlive && client.space.hot.peek(key)?.copies?.isRefresher === true
        if (!isElected || isTold || process.isFrozen) untoldMs.delete(id)
        else if (!untoldMs.has(id)) untoldMs.set(id, now)
        else if (now - untoldMs.get(id)! > overlapMs)
          fleet.world.fail(new BrokenLaw('followed', `${process.name}, which is not told of changes, follows ${key}`))
      }
    }
    for (const key of copied) {
      const elected = fleet.followersOf(key).filter((name) => !fleet.isDisturbed(name, 'redis-1', calmMs))
      if (elected.length < 2) {
        sinceMs.delete(key)
        continue
      }
      const since = sinceMs.get(key) ?? now
      sinceMs.set(key, since)
      if (now - since <= overlapMs) continue
      fleet.world.fail(new BrokenLaw('followed', `${elected.join(' and ')} both follow ${key}, for ${now - since} ms`))
    }
    if (!fleet.isOver) fleet.world.schedule(everyMs, look)
  }
  fleet.world.schedule(everyMs, look)
}
