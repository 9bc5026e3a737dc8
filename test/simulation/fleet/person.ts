import { parseRule, type Rule } from '@firebreak/core/rules'
import type { SimulatedProcess } from '@firebreak/testkit'
import type { Fleet } from './fleet.ts'

/** A change that a person asked for, and what they were told. */
export interface Change<Value> {
  readonly value: Value
  readonly outcome: 'asked' | 'made' | 'refused' | 'unsure'
}

/** Somebody who changes a rule and throws the switch, now at one hub, now at the other. */
export class Person {
  readonly #fleet: Fleet
  readonly #process: SimulatedProcess
  readonly rule: Change<number>[] = []
  readonly switch: Change<boolean>[] = [{ value: false, outcome: 'made' }]
  #isOver = false
  #areRulesPut = false

  constructor(fleet: Fleet) {
    this.#fleet = fleet
    this.#process = fleet.world.process('person')
  }

  start(rules: readonly Rule[]): void {
    const process = this.#process
    process.start(async () => {
      for (const rule of rules) await this.#put(rule)
      this.#areRulesPut = true
      const isThrower = process.chance.happens(0.3)
      while (!this.#isOver) {
        await process.sleep(process.chance.between(300, 1500))
        if (this.#isOver) break
        if (isThrower && process.chance.happens(0.25)) {
          await this.#turn(true)
          await process.sleep(process.chance.between(50, 700))
          for (let tries = 0; tries < 20 && this.#isOff; tries++) {
            await this.#turn(false)
            await process.sleep(300)
          }
        } else {
          await this.#change()
        }
      }
    })
  }

  get #isOff(): boolean {
    return this.switch.at(-1)!.value || this.switch.at(-1)!.outcome !== 'made'
  }

  /** True once the fleet has its rules. */
  get areRulesPut(): boolean {
    return this.#areRulesPut
  }

  stop(): void {
    this.#isOver = true
  }

  /**
   * The values that may be in force: the last that was made, and whatever may have been made, which a network that held it
   * up may bring later than one that was asked for after it.
   */
  static possible<Value>(changes: readonly Change<Value>[]): Value[] {
    const last = changes.findLast(({ outcome }) => outcome === 'made')
    const open = changes.filter(({ outcome }) => outcome === 'asked' || outcome === 'unsure')
    return [...(last === undefined ? [] : [last]), ...open].map(({ value }) => value)
  }

  async #put(rule: Rule): Promise<void> {
    for (;;) {
      const core = this.#fleet.hubs[0]!.core
      try {
        if (core === undefined) throw new Error('the hub is not there')
        await core.putRule(rule, 'person')
        return
      } catch {
        await this.#process.sleep(20)
      }
    }
  }

  async #change(): Promise<void> {
    const value = 1000 + this.rule.length
    const core = this.#process.chance.pick(this.#fleet.hubs).core
    if (core === undefined) return
    const rule = parseRule({ id: 'person', prefix: 'nobody:', threshold: value, strategy: 'LocalCache' })
    await this.#told(this.rule, value, () => core.putRule(rule, 'person'))
  }

  async #turn(isOff: boolean): Promise<void> {
    const core = this.#process.chance.pick(this.#fleet.hubs).core
    if (core === undefined) return
    await this.#told(this.switch, isOff, () => core.setOff(isOff, 'person'))
  }

  /** A hub that dies meanwhile never answers. */
  async #told<Value>(changes: Change<Value>[], value: Value, ask: () => Promise<unknown>): Promise<void> {
    const index = changes.push({ value, outcome: 'asked' }) - 1
    let isAnswered = false
    const answer = (outcome: Change<Value>['outcome']) => (): void => {
      isAnswered = true
      changes[index] = { value, outcome }
      this.#process.note(`${String(value)} was ${outcome}`)
    }
    ask().then(
      // False: a thrown switch that the store gets when it is back, perhaps after one that was asked for later.
      (isStored) => answer(isStored === false ? 'unsure' : 'made')(),
      (error: Error & { code?: string }) => answer(error.code === 'FB_STORE_AWAY' ? 'refused' : 'unsure')(),
    )
    for (let waited = 0; !isAnswered && waited < 3000; waited += 20) await this.#process.sleep(20)
  }
}
