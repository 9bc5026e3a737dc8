import type { Runtime, TimerHandle, Timers } from '@firebreak/core'
import type { ProxyClient } from '../client/proxy-client.ts'
import type { RosterAnswer, RosterQuery, RosterRow } from './client-filter.ts'
import { isMeant, listedClient, rowOf } from './listed-client.ts'

/** What threads tell each other about their clients. */
export type RosterNews =
  | { readonly asked: string; readonly query: RosterQuery }
  | { readonly answered: string; readonly answer: RosterAnswer }

interface Pending {
  readonly rows: RosterRow[]
  killed: number
  missing: number
  readonly onAnswer: (answer: RosterAnswer) => void
  readonly timer: TimerHandle
}

/**
 * Servers do not assign ids this high, and each roster starts at a random one: another proxy in front of the same
 * Redis, a successor of this proxy, or another thread is unlikely to use the same id.
 */
const leastId = 10 ** 15
/** Keeps ids below 2^53 however many a roster assigns. */
const startRange = 8 * 10 ** 15
/** A thread that does not answer for this long is left out. */
const answerMs = 2000

/** The clients of a proxy, over all its threads, for CLIENT LIST and CLIENT KILL. */
export class ClientRoster {
  readonly #clients: Iterable<ProxyClient>
  readonly #thread: number
  readonly #otherThreads: number
  readonly #timers: Timers
  readonly #pending = new Map<string, Pending>()
  #lastId: number
  #asked = 0
  /** Sends news to the other threads. */
  publish: (news: RosterNews) => void = () => {}

  constructor(clients: Iterable<ProxyClient>, thread: number, threads: number, runtime: Runtime) {
    this.#clients = clients
    this.#thread = thread
    this.#otherThreads = threads - 1
    this.#timers = runtime.timers
    this.#lastId = leastId + Math.floor(runtime.random() * startRange)
  }

  nextId(): number {
    return ++this.#lastId
  }

  /** Queries all threads. `asker` is not closed here: it has to get the answer first. */
  ask(query: RosterQuery, asker: ProxyClient, onAnswer: (answer: RosterAnswer) => void): void {
    const answer = this.#carryOut(query, asker)
    if (this.#otherThreads === 0) {
      onAnswer(answer)
      return
    }
    const id = `${this.#thread} ${++this.#asked}`
    const timer = this.#timers.setTimeout(() => this.#finish(id), answerMs)
    this.#pending.set(id, {
      rows: [...answer.rows],
      killed: answer.killed,
      missing: this.#otherThreads,
      onAnswer,
      timer,
    })
    this.publish({ asked: id, query })
  }

  /** Handles another thread's query or answer. */
  take(news: RosterNews): void {
    if ('asked' in news) {
      this.publish({ answered: news.asked, answer: this.#carryOut(news.query, undefined) })
      return
    }
    const pending = this.#pending.get(news.answered)
    if (pending === undefined) return
    pending.rows.push(...news.answer.rows)
    pending.killed += news.answer.killed
    if (--pending.missing === 0) this.#finish(news.answered)
  }

  #finish(id: string): void {
    const { rows, killed, timer, onAnswer } = this.#pending.get(id)!
    this.#pending.delete(id)
    timer.cancel()
    onAnswer({ rows, killed })
  }

  #carryOut({ act, filter }: RosterQuery, asker: ProxyClient | undefined): RosterAnswer {
    const rows: RosterRow[] = []
    let killed = 0
    for (const client of [...this.#clients]) {
      const listed = listedClient(client)
      if (act === 'list') {
        const row = rowOf(listed, filter)
        if (row !== undefined) rows.push(row)
      } else if (!isMeant(listed, filter)) continue
      else if (client !== asker) {
        client.destroy()
        killed++
      } else if (!filter.skipsAsker) killed++
    }
    return { rows, killed }
  }
}
