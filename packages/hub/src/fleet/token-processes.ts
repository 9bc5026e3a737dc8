import type { AppGrant } from '../access/credential.ts'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import { SensorBoundsError } from './sensor-bounds.ts'

/** A process that was not heard of for this long makes room for another. */
const silentMs = 60_000
/** So many processes of a token may be cut off within `silentMs` before it has no room for ones that were not known. */
const maxCutOff = 5

type Verb = 'report' | 'tell of locks' | 'tell of alarms'

/**
 * Which processes report under which token. A stolen token could otherwise pretend to be any number of them, and it takes two
 * to limit a key for all: where `maxProcesses` of a token is what its application has, there is no room for invented ones.
 * And one that is cut off for saying too much could go on at once as another: after a few of those none is let in that was
 * not known before.
 */
export class TokenProcesses {
  readonly #alarms: AlarmBoard
  readonly #fallback: number
  /** What the processes do here. */
  readonly #verb: Verb
  readonly #byToken = new Map<string, Map<string, number>>()
  readonly #refusedAt = new Map<string, number>()
  /** Of each token, who was cut off and when. */
  readonly #cutOff = new Map<string, Map<string, number>>()

  /** `fallback` is the bound of tokens that have none of their own. */
  constructor(fallback: number, alarms: AlarmBoard, verb: Verb = 'report') {
    this.#fallback = fallback
    this.#verb = verb
    this.#alarms = alarms
  }

  /** Throws if the token's processes are at their maximum and this is not one of them. */
  check({ name, maxProcesses = this.#fallback }: AppGrant, processId: string, now: number): void {
    if (maxProcesses === Number.POSITIVE_INFINITY) return
    const processes = this.#byToken.get(name) ?? new Map<string, number>()
    this.#byToken.set(name, processes)
    if (!processes.has(processId)) this.#refuseAfterCutOffs(name, now)
    if (!processes.has(processId) && processes.size >= maxProcesses) {
      // The one that was heard of longest ago is the first.
      const [oldest, heardAt] = processes.entries().next().value!
      if (now - heardAt <= silentMs) {
        const what = `more than ${maxProcesses} processes ${this.#verb} under the token ${name} (maxProcesses)`
        this.#refuse(name, what, `${maxProcesses} processes ${this.#verb} under this token already (maxProcesses)`, now)
      }
      processes.delete(oldest)
    }
    processes.delete(processId)
    processes.set(processId, now)
  }

  /** A process was cut off: it said more than one can. */
  countCutOff({ name, maxProcesses = this.#fallback }: AppGrant, processId: string, now: number): void {
    if (maxProcesses === Number.POSITIVE_INFINITY) return
    const cutOff = this.#cutOff.get(name) ?? new Map<string, number>()
    this.#cutOff.set(name, cutOff)
    if (cutOff.size < maxCutOff && !cutOff.has(processId)) cutOff.set(processId, now)
    this.#byToken.get(name)?.delete(processId)
  }

  /** Once a second: forgets who is silent, and ends alarms of tokens that nobody tried to use since. */
  watch(now: number): void {
    for (const [name, processes] of this.#byToken) {
      for (const [id, heardAt] of processes) {
        if (now - heardAt <= silentMs) break
        processes.delete(id)
      }
      if (processes.size === 0) this.#byToken.delete(name)
    }
    for (const [name, cutOff] of this.#cutOff) {
      for (const [id, at] of cutOff) if (now - at > silentMs) cutOff.delete(id)
      if (cutOff.size === 0) this.#cutOff.delete(name)
    }
    for (const [name, refusedAt] of this.#refusedAt) {
      if (now - refusedAt <= silentMs) continue
      this.#refusedAt.delete(name)
      this.#alarms.clear(`token:${this.#subject(name)}`)
    }
  }

  #refuseAfterCutOffs(name: string, now: number): void {
    const cutOff = this.#cutOff.get(name)
    if (cutOff === undefined || cutOff.size < maxCutOff) return
    const recent = [...cutOff.values()].filter((at) => now - at <= silentMs).length
    if (recent < maxCutOff) return
    const what = `${recent} processes under the token ${name} were cut off within a minute`
    this.#refuse(name, what, `${recent} processes under this token were cut off: new ones wait for a minute`, now)
  }

  /** The token, and what its processes do where that is not to report. */
  #subject(name: string): string {
    return this.#verb === 'report' ? name : `${name}/${this.#verb.replace('tell of ', '')}`
  }

  #refuse(name: string, cause: string, reason: string, now: number): never {
    this.#refusedAt.set(name, now)
    const retry =
      'the others are refused; if the application has not grown, the token may be stolen: firebreak token rotate'
    this.#alarms.raise({ id: `token:${this.#subject(name)}`, severity: 'warning', cause, retry })
    throw new SensorBoundsError(reason)
  }
}
