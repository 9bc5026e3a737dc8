import type { Fleet } from '../fleet/fleet.ts'
import type { SimulatedHub } from '../fleet/simulated-hub.ts'
import { BrokenLaw } from './laws.ts'

const everyMs = 250
/** Sensors have moved by then … */
const moveMs = 5000
/** … and a heartbeat more, since a hub is cut off before it says so. */
const slackMs = 1500

/** By then a dead hub is no longer counted: its time and two turns of the other's. */
const forgetMs = 3000 + 1500

/** While it runs: sensors of a hub that is cut off from its store move to one that is not. */
export function watchMoving(fleet: Fleet): void {
  const aloneSinceMs = new Map<string, number>()
  const wellSinceMs = new Map<string, number>()
  const deadSinceMs = new Map<string, number>()
  /** How long a hub was cut off before it recovered: a sensor that found it so asks again no earlier than that. */
  const wasAloneMs = new Map<string, number>()
  const look = (): void => {
    const now = fleet.world.elapsedMs
    for (const hub of fleet.hubs) {
      const { core, name } = hub
      const isThere = core !== undefined && !hub.current().isFrozen
      if (isThere && !core.keys.isAlone && aloneSinceMs.has(name)) wasAloneMs.set(name, since(aloneSinceMs, name, now))
      mark(aloneSinceMs, name, now, isThere && core.keys.isAlone)
      mark(wellSinceMs, name, now, isThere && !core.keys.isAlone)
      mark(deadSinceMs, name, now, !hub.current().isAlive)
    }
    const dead = fleet.hubs.find(({ name }) => since(deadSinceMs, name, now) > forgetMs)
    const left = fleet.hubs.find(({ name }) => since(wellSinceMs, name, now) > forgetMs)
    if (dead !== undefined && left?.core !== undefined && left.core.hubCount !== 1 && mayJudge(fleet, dead, left)) {
      const what = `${left.name} still counts ${dead.name}, which died ${forgetMs} ms ago`
      fleet.world.fail(new BrokenLaw('forgotten', what))
    }
    const cut = fleet.hubs.find(({ name }) => since(aloneSinceMs, name, now) > moveMs + slackMs)
    const other = fleet.hubs.find(
      ({ name }) => since(wellSinceMs, name, now) > moveMs + slackMs + (wasAloneMs.get(name) ?? 0),
    )
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

/** What a dead hub had sent may come late, the other may not hear of it in time, and the store may not know the time. */
function mayJudge(fleet: Fleet, dead: SimulatedHub, left: SimulatedHub): boolean {
  const isHeard = [dead, left].every(({ name }) => !fleet.isDisturbed(name, 'redis-2', forgetMs, 'kill'))
  return !fleet.hasOddStoreClock && isHeard
}

function mark(times: Map<string, number>, name: string, now: number, holds: boolean): void {
  if (!holds) times.delete(name)
  else if (!times.has(name)) times.set(name, now)
}

function since(times: ReadonlyMap<string, number>, name: string, now: number): number {
  return now - (times.get(name) ?? now)
}
