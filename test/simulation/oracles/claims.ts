import type { Fleet } from '../fleet/fleet.ts'
import { passing, threshold, versioned } from '../fleet/keys.ts'
import { BrokenLaw } from './laws.ts'

const everyMs = 250
/** A claim is held for 3 s, and looked at a moment later. */
const lapseMs = 3000 + 1000

/** A claim, and a report by which it was made. */
const aloneMs = lapseMs + 1000

/**
 * While it runs: what a process handles is in its hub's table, or it has just found so itself; and what it came to handle
 * without a hub, it handles no longer than its own accesses are a reason to.
 */
export function watchClaims(fleet: Fleet): void {
  const sinceMs = new Map<string, number>()
  /** Keys that were not hot when their process was last seen with a hub, or have not been since; with the table it had. */
  const coldAlone = new Map<string, string>()
  const look = (): void => {
    const now = fleet.world.elapsedMs
    for (const { process, shield, cluster } of fleet.lives) {
      const { instanceId } = shield.options
      const { epoch, version } = shield.tableVersion
      const core = fleet.hubs.find((hub) => hub.core?.delivery.epoch === epoch)?.core
      const table = core?.delivery.view('shop')
      // A process that does not receive the table continues with the one that it has.
      const isTold = shield.isConnected && !process.isFrozen && table?.version === version
      for (const key of [...versioned, ...passing]) {
        const id = `${process.name} ${instanceId} ${key}`
        // A paused process does not know that time has passed.
        if (shield.isConnected || process.isFrozen || fleet.isDisturbed(process.name, process.name, aloneMs, 'cut'))
          coldAlone.delete(id)
        else if (!cluster.isHot(key)) coldAlone.set(id, `${epoch} ${version}`)
        else if (
          coldAlone.get(id) === `${epoch} ${version}` &&
          fleet.accessesOf(key, aloneMs, instanceId) < threshold / 4
        ) {
          const what = `${process.name}, which has no hub, handles ${key}, which it found hot itself more than ${aloneMs} ms ago`
          fleet.world.fail(new BrokenLaw('lapsed', what))
        }
        // Whoever reports into a half-open connection goes on finding the key hot, and claims it again.
        const hasFoundSo = fleet.accessesOf(key, lapseMs, instanceId) >= threshold
        if (!isTold || !cluster.isHot(key) || table.has('main', key) || hasFoundSo) sinceMs.delete(id)
        else if (now - (sinceMs.get(id) ?? now) > lapseMs) {
          const what = `${process.name} handles ${key} for ${lapseMs} ms, which is in no table`
          fleet.world.fail(new BrokenLaw('lapsed', what))
        } else if (!sinceMs.has(id)) sinceMs.set(id, now)
      }
    }
    if (!fleet.isOver) fleet.world.schedule(everyMs, look)
  }
  fleet.world.schedule(everyMs, look)
}
