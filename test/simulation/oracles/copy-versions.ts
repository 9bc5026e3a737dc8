import type { Fleet } from '../fleet/fleet.ts'
import { versioned } from '../fleet/keys.ts'
import { BrokenLaw } from './laws.ts'

const everyMs = 25
/** The names of the markers beside copies; a copy's place is 1 to `copyCount`. */
const markers = versioned
  .filter((key) => key.startsWith('copy:'))
  .flatMap((key) => [1, 2, 3].map((place) => `{${key}_${place}}:firebreak-marker`))

/** While it runs: a copy that is vouched for never becomes an older one. */
export function watchCopies(fleet: Fleet): void {
  const { world, main, reads } = fleet
  let known: readonly number[] = []
  let epoch = reads.epoch
  const look = (): void => {
    if (main.isRunning) {
      const now = (main.ask('MGET', ...markers) as (string | null)[]).map((text) =>
        Number(/^\d+/.exec(text ?? '')?.[0]),
      )
      // What a server has lost is lost for its copies too.
      const place = reads.epoch === epoch ? now.findIndex((version, index) => version < known[index]!) : -1
      if (place >= 0) {
        world.fail(new BrokenLaw('copied', `${markers[place]} went from ${known[place]} back to ${now[place]}`))
      }
      known = now
      epoch = reads.epoch
    }
    if (!fleet.isOver) world.schedule(everyMs, look)
  }
  world.schedule(everyMs, look)
}
