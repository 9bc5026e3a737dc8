import type { Chance } from './chance.ts'
import type { SimulatedWorld } from './simulated-world.ts'

/** One fault, as data: what happens to which target, when and for how long. */
export interface Fault {
  /** When, in milliseconds since the world began. */
  readonly atMs: number
  readonly kind: string
  /** A process, an address, a link `process>address`, or `*`. */
  readonly target: string
  /** It is undone after this long; without it, whatever it did stays done. */
  readonly forMs?: number
  /** How strong, in the kind's own unit (milliseconds of delay, bytes a second, a step of a clock). */
  readonly amount?: number
}

export type FaultSchedule = readonly Fault[]

/** Does one kind of fault; what it returns undoes it. */
export type FaultHandler = (fault: Fault, chance: Chance) => (() => void) | undefined

export type FaultKinds = Readonly<Record<string, FaultHandler>>

/** Carries a schedule out in a world. */
export class FaultPlayer {
  readonly #world: SimulatedWorld
  readonly #kinds = new Map<string, FaultHandler>()
  readonly #open = new Set<() => void>()
  #injected = 0

  constructor(world: SimulatedWorld, ...kinds: FaultKinds[]) {
    this.#world = world
    for (const each of kinds) this.can(each)
  }

  /** How many faults have happened. */
  get injected(): number {
    return this.#injected
  }

  /** Adds kinds of faults. A kind that is there already is tried after it: both act where both know the target. */
  can(kinds: FaultKinds): this {
    for (const [kind, handler] of Object.entries(kinds)) {
      const earlier = this.#kinds.get(kind)
      this.#kinds.set(kind, earlier === undefined ? handler : both(earlier, handler))
    }
    return this
  }

  /** Lets the schedule happen as time passes. */
  play(schedule: FaultSchedule): void {
    for (const fault of schedule) {
      const handler = this.#kinds.get(fault.kind)
      if (handler === undefined) throw new Error(`no fault of kind ${fault.kind} is known here`)
      this.#world.schedule(fault.atMs - this.#world.elapsedMs, () => this.#inject(fault, handler))
    }
  }

  /** Undoes all that lasts, so that the world can come to rest. */
  undoAll(): void {
    for (const undo of [...this.#open]) undo()
  }

  #inject(fault: Fault, handler: FaultHandler): void {
    this.#injected++
    this.#world.note(`fault ${faultText(fault)}`)
    // Chance of its own: the other faults do not change what this one does.
    const undo = handler(fault, this.#world.chance.fork(`fault ${faultText(fault)}`))
    if (undo === undefined) return
    const undoOnce = (): void => {
      if (!this.#open.delete(undoOnce)) return
      this.#world.note(`undone ${fault.kind} ${fault.target}`)
      undo()
    }
    this.#open.add(undoOnce)
    if (fault.forMs !== undefined) this.#world.schedule(fault.forMs, undoOnce)
  }
}

function both(first: FaultHandler, second: FaultHandler): FaultHandler {
  return (fault, chance) => {
    const undoFirst = first(fault, chance)
    const undoSecond = second(fault, chance)
    if (undoFirst === undefined) return undoSecond
    return () => {
      undoFirst()
      undoSecond?.()
    }
  }
}

/** A fault in one line, as a log and a report show it. */
export function faultText({ atMs, kind, target, forMs, amount }: Fault): string {
  const length = forMs === undefined ? '' : ` for ${forMs} ms`
  return `${kind} ${target} at ${atMs} ms${length}${amount === undefined ? '' : ` (${amount})`}`
}

/** One kind of fault as a random schedule may use it. */
export interface FaultChoice {
  readonly kind: string
  readonly targets: readonly string[]
  /** From and to; without it the fault is not undone. */
  readonly forMs?: readonly [number, number]
  readonly amount?: readonly [number, number]
  /** How often it is chosen against the others. @default 1 */
  readonly weight?: number
}

/** A random schedule of this many faults within a time, in order of time. */
export function randomSchedule(
  chance: Chance,
  choices: readonly FaultChoice[],
  { count, fromMs = 0, toMs }: { readonly count: number; readonly fromMs?: number; readonly toMs: number },
): Fault[] {
  const weights = choices.map(({ weight = 1 }) => weight)
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const faults = Array.from({ length: count }, (): Fault => {
    let drawn = chance.next() * total
    const choice = choices.find((_, index) => (drawn -= weights[index]!) < 0) ?? choices.at(-1)!
    const whole = ([from, to]: readonly [number, number]): number => Math.round(chance.between(from, to))
    return {
      atMs: whole([fromMs, toMs]),
      kind: choice.kind,
      target: chance.pick(choice.targets),
      ...(choice.forMs === undefined ? {} : { forMs: whole(choice.forMs) }),
      ...(choice.amount === undefined ? {} : { amount: whole(choice.amount) }),
    }
  })
  return faults.sort((a, b) => a.atMs - b.atMs)
}
