import type { Fleet } from '../fleet/fleet.ts'
import { passing, versioned } from '../fleet/keys.ts'
import { agreeMs } from './agreement.ts'
import { BrokenLaw } from './laws.ts'

/** A window, the minimum hold time of a hot key, and some ticks. */
const coolMs = 5000

/** Copies and their companion keys. */
const besideCopy = /:firebreak-(marker|owner|refresher)$|^copy:\d_\d+(~\d+)?$/

/** The longest that any of them lives: a mark of ownership. */
const longestMs = 67_000

/** The connections of an idle fleet, and its timers and bytes in flight. */
const maxConnections = 60
const maxPending = 400

/** Once nothing is in the way, no access is lost on its way to the hubs. */
function checkLost({ missingAtCalm, counts, hubs }: Fleet): void {
  if (hubs.some(({ core }) => core!.delivery.isOff)) return
  for (const [who, before] of missingAtCalm) {
    const lost = counts.missing(who) - before
    if (lost > 0) throw new BrokenLaw('counted', `${lost} accesses of ${who} were counted by no hub, without any fault`)
  }
}

/** What must be true at the end, when there are no more calls: first bounds, then leftovers. */
export async function checkAftermath(fleet: Fleet): Promise<void> {
  const { world, network, main } = fleet
  await world.run(coolMs)
  for (const { process, cluster } of fleet.lives) {
    const hot = [...versioned, ...passing].find((key) => cluster.isHot(key))
    if (hot === undefined) continue
    throw new BrokenLaw('cooled', `${hot} is hot in ${process.name} after ${coolMs} ms without access`)
  }
  const names = (main.ask('KEYS', '*') as string[]).filter((name) => besideCopy.test(name))
  // Keys that a process could not remove because of a fault expire on their own.
  const beside = names.filter((name) => Number(main.ask('PTTL', name)) > longestMs - coolMs - agreeMs / 2)
  // If no process may follow a key, none removes its copies.
  if (beside.length > 0 && !fleet.reads.hasOddClock && fleet.guard === 'tracking') {
    throw new BrokenLaw('cooled', `${beside.join(', ')} is left ${coolMs} ms after the last access`)
  }
  fleet.counts.checkOnce()
  checkLost(fleet)
  if (network.connections > maxConnections) {
    throw new BrokenLaw('bounded', `${network.connections} connections are open in a fleet at rest`)
  }
  if (world.pending > maxPending) throw new BrokenLaw('bounded', `${world.pending} timers are set in a fleet at rest`)
  // All processes end at once, so none removes anything.
  for (const { process } of fleet.lives) process.kill()
  fleet.proxy.current().kill()
  for (const other of fleet.others) other.current().kill()
  for (const hub of fleet.hubs) hub.current().kill()
  if (fleet.reads.hasOddClock) return
  await world.run(8000)
  const copies = main.ask('KEYS', 'copy:*') as string[]
  const left = copies.filter((name) => /^copy:\d_\d+(~\d+)?$/.test(name))
  if (left.length > 0) throw new BrokenLaw('copies', `${left.join(', ')} is left 8 s after the last process ended`)
}
