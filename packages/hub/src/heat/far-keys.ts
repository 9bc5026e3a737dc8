import { HeatWindow, keyName, type Rule, RuleSet, type WindowRules } from '@firebreak/core'

/**
 * From this part of its threshold on a key is near: counted exactly, for each service, with its state and its hosts. Where
 * many hubs share the sensors, from less: a key is told to the others from T/(2·hubs) on.
 */
const nearPart = 1 / 8
const plainWindowMs = 1000

/** What decides when the keys of one rule are near. */
interface NearLine {
  readonly windowMs: number
  readonly heat: number
}

/** Where no rule matches, only the hottest are of interest. */
const noRule: NearLine = { windowMs: plainWindowMs, heat: Number.POSITIVE_INFINITY }

export interface FarKeysOptions {
  readonly redisClusterId: string
  readonly rules: readonly Rule[]
  readonly maxKeys: number
  readonly now: number
  /** Against keys that were chosen to collide. */
  readonly hashSeed: number
  /** Hubs that share the sensors. */
  readonly hubCount: number
}

/**
 * The keys of one cluster that are far from any threshold, which is nearly all of them: core's windows on the progressive
 * dict count them, at some hundred bytes a key and without an object. What comes near is linked to `Near`, which the
 * engine keeps; the windows here go on counting it, so that a key that goes far again needs nothing.
 */
export class FarKeys<Near> {
  readonly #redisClusterId: string
  readonly #window: HeatWindow
  readonly #links: (Near | undefined)[] = []
  #lines: readonly NearLine[]
  #wasNew = false

  constructor({ redisClusterId, rules, maxKeys, now, hashSeed, hubCount }: FarKeysOptions) {
    this.#redisClusterId = redisClusterId
    this.#lines = linesOf(rules, hubCount)
    this.#window = new HeatWindow({
      rules: this.#windowRules(rules),
      startMs: now,
      maxKeys,
      hashSeed,
      onNewKey: () => {
        this.#wasNew = true
      },
      onForget: (index) => {
        this.#links[index] = undefined
      },
    })
  }

  get size(): number {
    return this.#window.size
  }

  get memoryBytes(): number {
    return this.#window.dict.bytes
  }

  /** Counts accesses; the key's index, −1 where there is no room. */
  add(bytes: Uint8Array, start: number, end: number, count: number, now: number): number {
    this.#wasNew = false
    this.#window.moveTo(now)
    return this.#window.add(bytes, start, end, count, 0, 0, -1)
  }

  /** True where the last `add` was the key's first, or first since it was forgotten. */
  get wasNew(): boolean {
    return this.#wasNew
  }

  /** The index of a key that is counted, −1 where it is not. */
  find(bytes: Uint8Array, start: number, end: number): number {
    return this.#window.find(bytes, start, end)
  }

  near(index: number): Near | undefined {
    return this.#links[index]
  }

  link(index: number, near: Near | undefined): void {
    this.#links[index] = near
  }

  slotOf(index: number): number {
    return this.#window.slotOf(index)
  }

  heatOf(index: number): number {
    return this.#window.heatOf(index)
  }

  /** The window in which `heatOf` counts. */
  windowMsOf(index: number): number {
    return this.#lines[this.#window.ruleOf(index)]!.windowMs
  }

  /** The heat from which on the key is near. */
  nearHeatOf(index: number): number {
    return this.#lines[this.#window.ruleOf(index)]!.heat
  }

  setRules(rules: readonly Rule[], hubCount: number): void {
    this.#lines = linesOf(rules, hubCount)
    this.#window.setRules(this.#windowRules(rules))
  }

  sweep(now: number, steps: number): void {
    this.#window.moveTo(now)
    this.#window.sweep(steps)
  }

  #windowRules(rules: readonly Rule[]): WindowRules {
    // Whatever service reports the key: one whose winning rule is of a single service is near from the start.
    const anyService = new RuleSet(rules.map((rule) => ({ ...rule, serviceId: '*' })))
    const scope = anyService.scope(this.#redisClusterId, '')
    const thresholds = { levels: [], minHoldMs: 0 }
    return {
      rules: this.#lines.map(({ windowMs }) => ({ windowMs, thresholds, candidateAt: Number.POSITIVE_INFINITY })),
      match: (bytes, start, end) => scope.match(keyName(bytes.subarray(start, end))) + 1,
    }
  }
}

function linesOf(rules: readonly Rule[], hubCount: number): readonly NearLine[] {
  const part = Math.min(nearPart, 1 / (2 * hubCount))
  return [noRule, ...rules.map((rule) => nearLineOf(rule, part))]
}

/** A count of accesses bounds no writes, bytes or shares, nor one service's part: such keys are near at once. */
function nearLineOf({ windowMs, levels, serviceId }: Rule, part: number): NearLine {
  const isByAccesses = levels.every(({ measure, enterShare }) => measure === 'accesses' && enterShare === undefined)
  const heat = isByAccesses && serviceId === '*' ? Math.min(...levels.map(({ enter }) => enter)) * part : 0
  return { windowMs, heat }
}
