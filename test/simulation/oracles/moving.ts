import type { Fleet } from '../fleet/fleet.ts'
import { BrokenLaw } from './laws.ts'

const everyMs = 250
/** Sensors have moved by then … */
const moveMs = 5000
/** … and a heartbeat more, since a hub is cut off before it says so. */
const slackMs = 1500

/** While it runs: who is connected to a hub that is cut off from its store moves to one that is not. */
export function watchMoving(fleet: Fleet): void {
  const aloneSinceMs = new Map<string, number>()
  const wellSinceMs = new Map<string, number>()
  const look = (): void => {
    const now = fleet.world.elapsedMs
    for (const hub of fleet.hubs) {
      const { core, name } = hub
      const isThere = core !== undefined && !hub.current().isFrozen
      mark(aloneSinceMs, name, now, isThere && core.keys.isAlone)
      mark(wellSinceMs, name, now, isThere && !core.keys.isAlone)
    }
    const cut = fleet.hubs.find(({ name }) => since(aloneSinceMs, name, now) > moveMs + slackMs)
    const other = fleet.hubs.find(({ name }) => since(wellSinceMs, name, now) > moveMs + slackMs)
    if (cut?.core !== undefined && other !== undefined) {
      for (const { process, shield } of fleet.lives) {
        if (!shield.isConnected || process.isFrozen || shield.tableVersion.epoch !== cut.core.delivery.epoch) continue
        if (fleet.isDisturbed(process.name, other.name, moveMs + slackMs)) continue
        const what = `${process.name} stays with ${cut.name}, which is cut off, although ${other.name} is well`
        fleet.world.fail(new BrokenLaw('moved', what))
      }
    }
    if (!fleet.isOver) fleet.world.schedule(everyMs, look)
  }
  fleet.world.schedule(everyMs, look)
}

function mark(times: Map<string, number>, name: string, now: number, holds: boolean): void {
  if (!holds) times.delete(name)
  else if (!times.has(name)) times.set(name, now)
}

function since(times: ReadonlyMap<string, number>, name: string, now: number): number {
  return now - (times.get(name) ?? now)
}
