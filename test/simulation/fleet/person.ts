import { parseRule, type Rule } from '@firebreak/core/rules'
import type { SimulatedProcess } from '@firebreak/testkit'
import { BrokenLaw } from '../oracles/laws.ts'
import type { Fleet } from './fleet.ts'
import type { SimulatedHub } from './simulated-hub.ts'

/** By then a hub that has its store back has written everything that waited for it. */
const putOffMs = 1500

/** A change that a person asked for, and the answer. */
export interface Change<Value> {
  readonly value: Value
  readonly outcome: 'asked' | 'made' | 'refused' | 'unsure'
}

/** Somebody who changes a rule and uses the switch, sometimes at one hub, sometimes at the other. */
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
        const cut = this.#fleet.hubs.find(({ core }) => core?.isHeard && core.keys.isAlone)
        if (cut !== undefined && process.chance.happens(0.3)) {
          await this.#throwAlone(cut)
        } else if (isThrower && process.chance.happens(0.25)) {
          await this.#turn(true)
          await process.sleep(process.chance.between(50, 700))
          await this.#turnOn()
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

  async #turn(isOff: boolean, at = this.#process.chance.pick(this.#fleet.hubs)): Promise<void> {
    const { core } = at
    if (core === undefined) return
    await this.#told(this.switch, isOff, () => core.setOff(isOff, 'person'))
  }

  /** Uses the switch at a hub that is cut off, and makes sure that it is off everywhere once that hub has its store. */
  async #throwAlone(hub: SimulatedHub): Promise<void> {
    const { world } = this.#fleet
    const life = hub.current()
    await this.#turn(true, hub)
    const index = this.switch.length - 1
    // An unconfirmed change may still arrive, and switch on again.
    const isSettled = this.switch.slice(0, index).every(({ outcome }) => outcome === 'made' || outcome === 'refused')
    let wellMs = 0
    while (this.switch[index]!.outcome === 'unsure' && !this.#isOver && hub.current() === life && life.isAlive) {
      await this.#process.sleep(20)
      wellMs = hub.core?.keys.isAlone === false && !life.isFrozen ? wellMs + 20 : 0
      if (wellMs < putOffMs) continue
      if (isSettled && !this.#fleet.hasStoreLost && !hub.core!.delivery.isOff) {
        world.fail(new BrokenLaw('thrown', `${hub.name} was switched off while cut off, has its store, and is on`))
      }
      break
    }
    await this.#turnOn()
  }

  async #turnOn(): Promise<void> {
    for (let tries = 0; tries < 20 && this.#isOff; tries++) {
      await this.#turn(false)
      await this.#process.sleep(300)
    }
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
      // False: the store gets the switch when it is back, perhaps after a later change.
      (isStored) => answer(isStored === false ? 'unsure' : 'made')(),
      (error: Error & { code?: string }) => answer(error.code === 'FB_STORE_AWAY' ? 'refused' : 'unsure')(),
    )
    for (let waited = 0; !isAnswered && waited < 3000; waited += 20) await this.#process.sleep(20)
  }
}
