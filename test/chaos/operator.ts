import type { Rule } from '@firebreak/core/rules'
import type { Chance } from '@firebreak/testkit'
import type { Application } from './application.ts'
import type { ChaosWay } from './ways.ts'

const answerMs = 5000

/** What a hub reports of its state. */
export interface HubPicture {
  readonly rules: string
  readonly isOff: boolean
  readonly hotKeys: string
}

type Answer = { readonly status: number; readonly body: unknown } | undefined

/** What hubs last confirmed of one setting, as far as it can be known. */
class LastConfirmed<T> {
  value: T | undefined
  /** Hubs that may still carry out earlier requests. */
  readonly #unsettled = new Set<string>()

  constructor(value?: T) {
    this.value = value
  }

  /** A hub carries out its requests in order; those of another hub may come after them. */
  confirm(url: string, value: T): void {
    this.#unsettled.delete(url)
    this.value = this.#unsettled.size > 0 ? undefined : value
  }

  /** It may have been done, or may be done later. */
  doubt(url: string): void {
    this.#unsettled.add(url)
    this.value = undefined
  }
}

/** Somebody who uses the switch and changes rules while things break, and remembers what the hubs confirmed. */
export class Operator {
  readonly #off = new LastConfirmed(false)
  readonly #threshold = new LastConfirmed<number>()
  /** Clients whose shield has been seen off since the switch was used. */
  readonly #seenOff = new Set<ChaosWay>()
  readonly #urls: readonly string[]
  readonly #ways: readonly ChaosWay[]
  readonly #application: Application
  /** True between the first attempt to switch on and its refusal: from then on a shield may be on. */
  #mayBeOn = true

  constructor(urls: readonly string[], ways: readonly ChaosWay[], application: Application) {
    this.#urls = urls
    this.#ways = ways
    this.#application = application
  }

  /** What was last confirmed; undefined if another call may have changed it. */
  get expectedOff(): boolean | undefined {
    return this.#off.value
  }

  get expectedThreshold(): number | undefined {
    return this.#threshold.value
  }

  /** One action by a person, at one of the hubs. */
  async act(chance: Chance): Promise<void> {
    const url = chance.pick(this.#urls)
    if (chance.happens(0.5)) await this.#changeRule(url, 20 + chance.below(20))
    else await this.throwSwitch(url, this.expectedOff === false)
  }

  async throwSwitch(url: string, isOff: boolean): Promise<boolean> {
    if (!isOff) {
      this.#mayBeOn = true
      this.#seenOff.clear()
    }
    const answer = await this.#send('POST', `${url}/v1/switch`, { isOff })
    // Refused: nothing has changed. Without an answer, or with an uncertain one, it may have.
    const isRefused = answer?.status === 503 && codeOf(answer) === 'FB_STORE_AWAY'
    if (isRefused) {
      if (!isOff) this.#mayBeOn = this.expectedOff !== true
    } else if (answer?.status === 200 && (answer.body as { isStored: boolean }).isStored) {
      this.#off.confirm(url, isOff)
      if (isOff) this.#mayBeOn = false
      return true
      // A change that waits for the store is written later, unless the hub is killed before.
    } else this.#off.doubt(url)
    return false
  }

  /** "Never undone by a store that comes back": a shield that was off stays off until somebody switches on. */
  watchSwitch(): void {
    if (this.#mayBeOn || this.expectedOff !== true) return
    for (const way of this.#ways) {
      const isOff = way.isOff()
      if (isOff === true) this.#seenOff.add(way)
      else if (isOff === false && this.#seenOff.delete(way)) {
        this.#application.note('the kill switch holds', `the shield of ${way.name} is on again`)
      }
    }
  }

  async picture(url: string): Promise<HubPicture | undefined> {
    const [rules, table] = await Promise.all([
      this.#send('GET', `${url}/v1/rules`),
      this.#send('GET', `${url}/v1/table`),
    ])
    if (rules?.status !== 200 || table?.status !== 200) return undefined
    const { isOff, strategies } = table.body as { isOff: boolean; strategies: Record<string, unknown> }
    const { rules: list } = rules.body as { rules: readonly Rule[] }
    return { rules: JSON.stringify(list), isOff, hotKeys: hotKeysIn(strategies) }
  }

  async deleteRules(url: string): Promise<boolean> {
    const answers = await Promise.all(['hot', 'copy'].map((id) => this.#send('DELETE', `${url}/v1/rules/${id}`)))
    return answers.every((answer) => answer?.status === 204 || answer?.status === 404)
  }

  async #changeRule(url: string, threshold: number): Promise<void> {
    const rule = { prefix: 'hot:', threshold, windowMs: 1000, minHoldMs: 2000, strategy: 'LocalCache' }
    const answer = await this.#send('PUT', `${url}/v1/rules/hot`, rule)
    if (answer?.status === 200) this.#threshold.confirm(url, threshold)
    else if (answer?.status !== 503 || codeOf(answer) !== 'FB_STORE_AWAY') this.#threshold.doubt(url)
  }

  async #send(method: string, url: string, body?: object): Promise<Answer> {
    try {
      const answer = await fetch(url, {
        method,
        signal: AbortSignal.timeout(answerMs),
        ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      })
      const text = await answer.text()
      return { status: answer.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) }
    } catch {
      return undefined
    }
  }
}

function codeOf({ body }: { readonly body: unknown }): string | undefined {
  return (body as { code?: string } | undefined)?.code
}

/** Names only: the time when a key was found hot depends on when hubs learned of it. */
function hotKeysIn(strategies: unknown): string {
  const found = new Set(JSON.stringify(strategies).match(/(hot|copy):[\w:-]*\d/g) ?? [])
  return [...found]
    .filter((key) => !/_\d+$/.test(key))
    .sort()
    .join(' ')
}
