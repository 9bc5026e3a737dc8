import type { Fleet } from '../fleet/fleet.ts'
import { versioned } from '../fleet/keys.ts'
import { BrokenLaw } from './laws.ts'

const everyMs = 25
/** The longest that a push, a snapshot and a put take when nothing is in their way, whatever else a process has to do … */
const rewriteMs = 500
/** … and how long a process must have followed a key undisturbed. */
const calmMs = 4500
const places = [1, 2, 3]
const keys = versioned.filter((key) => key.startsWith('copy:'))
/** A copy's place is 1 to `copyCount`. */
const copies = keys.flatMap((key) => places.map((place) => ({ key, name: `${key}_${place}` })))
const names = [...keys, ...copies.flatMap(({ name }) => [name, `{${name}}:firebreak-marker`])]

interface Look {
  readonly atMs: number
  readonly epoch: number
  /** The earlier values of each key. */
  readonly values: ReadonlyMap<string, number>
  /** The only process that followed each key, with nothing in its way. */
  readonly followers: ReadonlyMap<string, string | undefined>
  /** The version of each copy's marker; not a number where nobody vouches for it. */
  readonly versions: ReadonlyMap<string, number>
}

/**
 * While it runs: a copy that is vouched for never becomes an older one, and while a process follows its key without any
 * disturbance it shows what the key held half a second ago, whoever wrote it.
 */
export function watchCopies(fleet: Fleet): void {
  const { world, main, reads } = fleet
  let looks: Look[] = []
  const look = (): void => {
    if (main.isRunning) {
      const told = main.ask('MGET', ...names) as (string | null)[]
      const held = new Map(names.map((name, index) => [name, told[index]]))
      const now = lookAt(fleet, held)
      // Data that a server has lost is lost for its copies too.
      if (looks.at(-1)?.epoch !== reads.epoch) looks = []
      const last = looks.at(-1)
      const back = copies.find(({ name }) => now.versions.get(name)! < (last?.versions.get(name) ?? 0))
      if (back !== undefined) {
        const [from, to] = [last, now].map((each) => each?.versions.get(back.name))
        world.fail(new BrokenLaw('copied', `${back.name} went from version ${from} back to ${to}`))
      }
      looks.push(now)
      while (looks[1] !== undefined && looks[1].atMs <= now.atMs - rewriteMs) looks.shift()
      const behind = copies.find(({ key, name }) => isBehind(looks, key, name, held))
      if (behind !== undefined) {
        const { key, name } = behind
        const what = `${name}, vouched for, is ${held.get(name)}, and ${key} was ${looks[0]!.values.get(key)} ${rewriteMs} ms before`
        world.fail(new BrokenLaw('copied', what))
      }
    } else looks = []
    if (!fleet.isOver) world.schedule(everyMs, look)
  }
  world.schedule(everyMs, look)
}

function lookAt(fleet: Fleet, held: ReadonlyMap<string, string | null | undefined>): Look {
  const follower = (key: string): string | undefined => {
    const [name, ...others] = fleet.followersOf(key)
    return name === undefined || others.length > 0 || fleet.isDisturbed(name, 'redis-1', calmMs) ? undefined : name
  }
  return {
    atMs: fleet.world.elapsedMs,
    epoch: fleet.reads.epoch,
    values: new Map(keys.map((key) => [key, Number(held.get(key) ?? 0)])),
    followers: new Map(keys.map((key) => [key, follower(key)])),
    versions: new Map(
      copies.map(({ name }) => [name, Number(/^\d+/.exec(held.get(`{${name}}:firebreak-marker`) ?? '')?.[0])]),
    ),
  }
}

/** Whether a copy is older than its key was at the first of these checks, although one process has followed it since. */
function isBehind(
  looks: readonly Look[],
  key: string,
  name: string,
  held: ReadonlyMap<string, string | null | undefined>,
): boolean {
  const [first] = looks
  const last = looks.at(-1)!
  const follower = last.followers.get(key)
  if (follower === undefined || last.atMs - first!.atMs < rewriteMs) return false
  if (Number.isNaN(last.versions.get(name)) || Number(held.get(name) ?? 0) >= first!.values.get(key)!) return false
  return looks.every(({ followers }) => followers.get(key) === follower)
}
