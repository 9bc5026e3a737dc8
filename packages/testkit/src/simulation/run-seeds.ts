import type { Chance } from './chance.ts'
import type { FaultSchedule } from './fault-schedule.ts'
import { shrinkSchedule } from './shrink-schedule.ts'
import { SimulatedWorld } from './simulated-world.ts'

/** A model's account of a successful run. */
export interface PlayResult {
  readonly calls?: number
  readonly faults?: number
}

/** Many runs of one model. */
export interface SeedRuns {
  readonly seeds: Iterable<number>
  /** The faults of a seed. @default none */
  readonly schedule?: (chance: Chance) => FaultSchedule
  /** One run; it throws where a law is broken. Whatever differs between runs comes from the world and the schedule. */
  readonly play: (world: SimulatedWorld, schedule: FaultSchedule) => Promise<PlayResult | undefined>
  /** Whether the schedule of a seed that fails is shrunk. @default true */
  readonly shrinks?: boolean
  /** What a failure is about: a smaller schedule must fail in the same way, else it shows another fault. @default its text up to a colon */
  readonly subjectOf?: (error: unknown) => string
  /** How many runs shrinking may take. @default 200 */
  readonly maxShrinkRuns?: number
  /** How many of its last events a failure shows. @default 30 */
  readonly lastEvents?: number
}

/** What became of one seed. */
export interface SeedOutcome {
  readonly seed: number
  /** The event log's digest. */
  readonly digest: string
  readonly simulatedMs: number
  readonly events: number
  readonly faults: number
  readonly calls: number
  /** Processor time of the run, shrinking apart. */
  readonly cpuMs: number
  readonly failure?: SeedFailure
}

/** A seed that fails, with what it takes to look into it. */
export interface SeedFailure {
  readonly error: unknown
  /** The smallest schedule found that still fails. */
  readonly schedule: FaultSchedule
  /** The error that the smallest schedule gives; its details may be others. */
  readonly smallestError: unknown
  /** The last events of the run with the smallest schedule. */
  readonly lastEvents: readonly string[]
  readonly shrinkRuns: number
}

interface Played {
  readonly world: SimulatedWorld
  readonly result: PlayResult | undefined
  readonly failure: { readonly error: unknown } | undefined
}

/** Plays a model for each seed and yields what became of it, as it comes. */
export async function* runSeeds(runs: SeedRuns): AsyncGenerator<SeedOutcome> {
  for (const seed of runs.seeds) {
    const begin = process.cpuUsage()
    // Drawn before the world is used, and from a fork: the schedule of a seed is the same whatever the model draws.
    const schedule = runs.schedule?.(new SimulatedWorld({ seed }).chance.fork('schedule')) ?? []
    const played = await playOnce(runs, seed, schedule)
    const { user, system } = process.cpuUsage(begin)
    const { world, result, failure } = played
    yield {
      seed,
      digest: world.log.digest,
      simulatedMs: world.elapsedMs,
      events: world.events,
      faults: result?.faults ?? schedule.length,
      calls: result?.calls ?? 0,
      cpuMs: (user + system) / 1000,
      ...(failure === undefined ? {} : { failure: await lookInto(runs, seed, schedule, played) }),
    }
  }
}

async function playOnce(runs: SeedRuns, seed: number, schedule: FaultSchedule): Promise<Played> {
  const world = new SimulatedWorld({ seed })
  try {
    return { world, result: await runs.play(world, schedule), failure: undefined }
  } catch (error) {
    return { world, result: undefined, failure: { error } }
  }
}

async function lookInto(runs: SeedRuns, seed: number, schedule: FaultSchedule, played: Played): Promise<SeedFailure> {
  let smallest = played
  const { subjectOf = beginningOf } = runs
  const subject = subjectOf(played.failure!.error)
  const fails = async (candidate: FaultSchedule): Promise<boolean> => {
    const again = await playOnce(runs, seed, candidate)
    const isSame = again.failure !== undefined && subjectOf(again.failure.error) === subject
    if (isSame) smallest = again
    return isSame
  }
  const maxRuns = runs.shrinks === false ? 0 : (runs.maxShrinkRuns ?? 200)
  const shrunk = await shrinkSchedule(schedule, fails, { maxRuns })
  return {
    error: played.failure!.error,
    schedule: shrunk.schedule,
    smallestError: smallest.failure!.error,
    lastEvents: smallest.world.log.lines.slice(-(runs.lastEvents ?? 30)),
    shrinkRuns: shrunk.runs,
  }
}

function beginningOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split(':')[0]!
}
