import type { AlarmAcknowledgement, AlarmSilence, AlarmView, Clock } from '@firebreak/core'
import type { HubStore } from '../store/hub-store.ts'
import type { AlarmBoard } from './alarm-board.ts'
import type { AlarmNotice } from './alarm-webhooks.ts'

/** Users' acknowledgement and silence of an alarm. */
interface AlarmNote {
  readonly acknowledged?: AlarmAcknowledgement
  readonly silence?: AlarmSilence
}

export interface AlarmDeskOptions {
  readonly board: AlarmBoard
  readonly store: HubStore
  readonly clock: Clock
  readonly hubId: string
  /** Sends notices of alarms that fire and that end. */
  readonly send: (notice: AlarmNotice) => void
  /** An alarm that ends sooner than this notifies nobody. @default 10000 */
  readonly pendingMs?: number
}

const recordKind = 'alarm-notes'
const maxEnded = 200
const endedMs = 86_400_000

/** Acknowledges, silences and sends alarms: a brief problem notifies nobody. */
export class AlarmDesk {
  readonly #options: Required<AlarmDeskOptions>
  readonly #notes = new Map<string, AlarmNote>()
  readonly #ended = new Map<string, AlarmView>()
  /** Alarms that were sent, with the severity sent. */
  readonly #told = new Map<string, AlarmView['severity']>()

  constructor(options: AlarmDeskOptions) {
    this.#options = { pendingMs: 10_000, ...options }
    options.board.onChange((event, alarm) => (event === 'cleared' ? this.#end(alarm) : this.#ended.delete(alarm.id)))
  }

  /** Loads acknowledgements and silences made at any hub. */
  async load(): Promise<void> {
    const kept = await this.#options.store.records(recordKind)
    this.#notes.clear()
    for (const [id, text] of kept) this.#notes.set(id, JSON.parse(text) as AlarmNote)
  }

  /** Critical ones first, then the oldest; ended ones last, if wanted. */
  list(withEnded = false): AlarmView[] {
    const now = this.#options.clock.now()
    const lasting = this.#options.board.list().map((alarm) => this.#view(alarm, now))
    if (!withEnded) return lasting
    return [...lasting, ...[...this.#ended.values()].reverse().map((alarm) => this.#view(alarm, now))]
  }

  /** The alarm, even if it has ended. */
  get(id: string): AlarmView | undefined {
    return this.list(true).find((alarm) => alarm.id === id)
  }

  /** Acknowledges an alarm until it ends. Undefined: withdraws the acknowledgement. */
  async acknowledge(id: string, acknowledged: AlarmAcknowledgement | undefined): Promise<void> {
    const { silence } = this.#notes.get(id) ?? {}
    await this.#save(id, { ...(silence && { silence }), ...(acknowledged && { acknowledged }) })
  }

  /** Silences an alarm until then, even if it is not currently raised. Undefined: notifications resume. */
  async silence(id: string, silence: AlarmSilence | undefined): Promise<void> {
    const { acknowledged } = this.#notes.get(id) ?? {}
    await this.#save(id, { ...(acknowledged && { acknowledged }), ...(silence && { silence }) })
  }

  /** Called once a second: sends alarms that have lasted long enough. */
  tick(now: number): void {
    const { board, pendingMs } = this.#options
    for (const alarm of board.list()) {
      const told = this.#told.get(alarm.id)
      if (told === 'critical' || told === alarm.severity) continue
      if (now - alarm.since < pendingMs || this.#silenceOf(alarm.id, now)) continue
      this.#told.set(alarm.id, alarm.severity)
      this.#send('raised', alarm, now)
    }
    for (const [id, { endedAt }] of this.#ended) if (now - endedAt! > endedMs) this.#ended.delete(id)
  }

  #end(alarm: AlarmView): void {
    const now = this.#options.clock.now()
    this.#ended.delete(alarm.id)
    this.#ended.set(alarm.id, { ...alarm, endedAt: now })
    if (this.#ended.size > maxEnded) this.#ended.delete(this.#ended.keys().next().value!)
    if (this.#told.delete(alarm.id) && !this.#silenceOf(alarm.id, now)) this.#send('cleared', alarm, now)
    // The acknowledgement ends with the alarm; the next one starts afresh.
    const { acknowledged, ...note } = this.#notes.get(alarm.id) ?? {}
    if (acknowledged === undefined) return
    this.#notes.set(alarm.id, note)
    this.#save(alarm.id, note).catch(() => {})
  }

  #send(event: 'raised' | 'cleared', alarm: AlarmView, at: number): void {
    this.#options.send({ event, hubId: this.#options.hubId, at, alarm })
  }

  #view(alarm: AlarmView, now: number): AlarmView {
    const { pendingMs } = this.#options
    const { endedAt = null } = alarm
    const state = endedAt !== null ? 'inactive' : now - alarm.since < pendingMs ? 'pending' : 'firing'
    const acknowledged = this.#notes.get(alarm.id)?.acknowledged ?? null
    return { ...alarm, state, acknowledged, silence: this.#silenceOf(alarm.id, now) ?? null, endedAt }
  }

  #silenceOf(id: string, now: number): AlarmSilence | undefined {
    const silence = this.#notes.get(id)?.silence
    return silence !== undefined && silence.until > now ? silence : undefined
  }

  async #save(id: string, note: AlarmNote): Promise<void> {
    const isEmpty = note.acknowledged === undefined && note.silence === undefined
    await this.#options.store.saveRecord(recordKind, id, isEmpty ? undefined : JSON.stringify(note))
    if (isEmpty) this.#notes.delete(id)
    else this.#notes.set(id, note)
  }
}
