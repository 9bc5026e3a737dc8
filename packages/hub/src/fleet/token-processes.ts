import type { AppGrant } from '../access/credential.ts'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import { SensorBoundsError } from './sensor-bounds.ts'

/** A process that has been silent for this long makes room for another. */
const silentMs = 60_000
/** When this many processes of a token have been cut off within `silentMs`, unknown ones are refused. */
const maxCutOff = 5

type Verb = 'report' | 'report locks' | 'report alarms'

/**
 * Which processes report under which token. Otherwise a stolen token could pretend to be any number of processes, and
 * two are enough to limit a key for all: if a token's `maxProcesses` matches its application, there is no room for
 * invented ones. A process that was cut off for reporting too much could also continue at once under another name:
 * after a few of those, unknown processes are refused.
 */
export class TokenProcesses {
  readonly #alarms: AlarmBoard
  readonly #fallback: number
  /** What the processes report. */
  readonly #verb: Verb
  readonly #byToken = new Map<string, Map<string, number>>()
  readonly #refusedAt = new Map<string, number>()
  /** For each token, who was cut off and when. */
  readonly #cutOff = new Map<string, Map<string, number>>()

  /** `fallback` is the bound for tokens without their own. */
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
      // The first is the one silent for the longest.
      const [oldest, heardAt] = processes.entries().next().value!
      if (now - heardAt <= silentMs) {
        const what = `more than ${maxProcesses} processes ${this.#verb} under the token ${name} (maxProcesses)`
        this.#refuse(name, what, `${maxProcesses} processes already ${this.#verb} under this token (maxProcesses)`, now)
      }
      processes.delete(oldest)
    }
    processes.delete(processId)
    processes.set(processId, now)
  }

  /** A process was cut off: it reported more than one can do. */
  countCutOff({ name, maxProcesses = this.#fallback }: AppGrant, processId: string, now: number): void {
    if (maxProcesses === Number.POSITIVE_INFINITY) return
    const cutOff = this.#cutOff.get(name) ?? new Map<string, number>()
    this.#cutOff.set(name, cutOff)
    if (cutOff.size < maxCutOff && !cutOff.has(processId)) cutOff.set(processId, now)
    this.#byToken.get(name)?.delete(processId)
  }

  /** Called once a second: forgets silent processes, and ends alarms of tokens that nobody has tried to use since. */
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

  /** The token, plus what its processes report if not accesses. */
  #subject(name: string): string {
    return this.#verb === 'report' ? name : `${name}/${this.#verb.replace('report ', '')}`
  }

  #refuse(name: string, cause: string, reason: string, now: number): never {
    this.#refusedAt.set(name, now)
    const retry =
      'the others are refused; if the application has not grown, the token may be stolen: firebreak token rotate'
    this.#alarms.raise({ id: `token:${this.#subject(name)}`, severity: 'warning', cause, retry })
    throw new SensorBoundsError(reason)
  }
}
