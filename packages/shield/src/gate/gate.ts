import { isCacheable } from '@firebreak/core/commands'
import type { HotKey } from '../cache/hot-key.ts'
import type { Tally } from '../status/tally.ts'
import type { ConnectionFacts } from './connection-facts.ts'
import type { GateRequest } from './gate-request.ts'
import type { HotKeys } from './hot-keys.ts'
import { KeySurvey } from './key-survey.ts'
import { keylessEffect } from './keyless.ts'
import { loading, pass, type Verdict } from './verdict.ts'

/**
 * Decides what becomes of a command of an application: one gate for each Redis, asked by the hooks of every client
 * library and by the proxy.
 *
 * *Order.* Redis answers a connection's commands in the order in which they were sent, and applications rely on it. So a
 * read is answered here only where nothing that was sent before it can have changed its key: no write of the key and no
 * flush is on its way, and the connection has nothing open that binds it to Redis.
 *
 * *Cost.* A command while nothing is hot, and the GET of a hot key that memory has, are most of what an application
 * sends; adapters handle those two without coming here.
 */
export class Gate {
  readonly #keys: HotKeys
  readonly #tally: Tally
  readonly #survey = new KeySurvey()
  #pendingFlushes = 0
  /** Called after a change by this process of which no watcher is told. */
  onUntold: (() => void) | undefined

  constructor(keys: HotKeys, tally: Tally) {
    this.#keys = keys
    this.#tally = tally
  }

  /** True while a command that changes keys without naming them is on its way: nothing that is kept may be served. */
  get isFlushing(): boolean {
    return this.#pendingFlushes > 0
  }

  /** Whether a read of a hot key may be answered here at this moment. */
  mayServe(hot: HotKey, connection: ConnectionFacts): boolean {
    return (
      hot.pendingWrites === 0 &&
      this.#pendingFlushes === 0 &&
      connection.isReady &&
      !connection.open.isBinding &&
      connection.isBehind?.(hot) !== true
    )
  }

  /** What is to be done with a command that is about to take a connection. */
  ask(request: GateRequest, connection: ConnectionFacts): Verdict {
    const { row } = request
    const { open } = connection
    if (row.keys.length === 0) return this.#keyless(request, connection)
    if (row.name === 'WATCH' && !connection.isPinned) open.isWatching = true
    if (row.access === 'none' && row.flags.has('scripting')) connection.sendsScript?.()
    const { read, readIndex, written, limited } = this.#survey.of(request)
    const isAsking = open.isAsking
    open.isAsking = false
    if (limited !== undefined && !open.isInTransaction && !connection.isPinned) {
      const verdict = this.#limit(request, limited, written === undefined ? readIndex : 0)
      if (verdict !== undefined) return verdict
    }
    if (written !== undefined) return this.#guard(written, connection)
    if (read === undefined || connection.isPinned || !read.isServed || !isCacheable(row, request.args)) return pass
    if (isAsking || !request.isAnswerable || !this.mayServe(read, connection)) return this.#bypass(read)
    return this.#serve(request, read, readIndex, connection.now())
  }

  /** Nothing that is kept is served until the returned function is called: what goes out may change any key. */
  beginFlush(isUntold = false): () => void {
    this.#pendingFlushes++
    this.#keys.abandon()
    return () => {
      this.#pendingFlushes--
      this.#keys.flush()
      if (isUntold) this.onUntold?.()
    }
  }

  /** Asks the limits of all keys; undefined where the command may go on. `readIndex`: its key if it only reads, else 0. */
  #limit(request: GateRequest, limited: readonly HotKey[], readIndex: number): Verdict | undefined {
    const { row, args, turn, canWait } = request
    const [first] = limited
    const { strategy, keepsLast } = first!.limit!
    let error = turn
    if (error === undefined) {
      const waits: Promise<void>[] = []
      for (const { limit } of limited) {
        const answer = limit!.admit(canWait, request.signal)
        if (answer instanceof Promise) waits.push(answer)
        else if (answer !== undefined) error = answer
        if (error !== undefined) break
      }
      if (error === undefined) {
        return waits.length === 0 ? undefined : { kind: 'hold', until: Promise.all(waits), strategy }
      }
      // Those that would have had to wait are charged when it is their turn, as if the command had been sent.
      void Promise.allSettled(waits)
    }
    if (error === 'paid') return undefined
    const isRead = keepsLast && readIndex > 0 && isCacheable(row, args)
    const last = isRead ? first!.lastReply(request.readOf(first!, readIndex).id) : undefined
    return last === undefined ? { kind: 'refuse', error, strategy } : { kind: 'answer', reply: last, isStale: true }
  }

  #serve(request: GateRequest, hot: HotKey, keyIndex: number, now: number): Verdict {
    const read = request.readOf(hot, keyIndex)
    const reply = hot.hit(read.id, now)
    if (reply !== undefined) return { kind: 'answer', reply, isStale: false }
    if (!request.canWait) {
      // It reads Redis itself, and the next one finds the reply here.
      hot.load(read, now, ignoreReply)
      return this.#bypass(hot)
    }
    return hot.load(read, now, request.whenLoaded()) ? loading : this.#bypass(hot)
  }

  #bypass(hot: HotKey): Verdict {
    hot.bypassed()
    this.#tally.bypasses++
    return pass
  }

  #guard(written: readonly HotKey[], { open, isPinned }: ConnectionFacts): Verdict {
    for (const hot of written) hot.beginWrite()
    const end = () => {
      for (const hot of written) hot.endWrite()
    }
    return this.#endWith(end, open.isInTransaction && !isPinned, open)
  }

  /** What a transaction queues happens at EXEC. */
  #endWith(end: () => void, isQueued: boolean, open: ConnectionFacts['open']): Verdict {
    if (!isQueued) return { kind: 'guarded', end }
    open.hold(end)
    return pass
  }

  #keyless(request: GateRequest, connection: ConnectionFacts): Verdict {
    const { open, isPinned } = connection
    const { row, args, isHandshake } = request
    const effect = keylessEffect(row.name)
    if (effect === undefined) return pass
    if (effect === 'flush' || effect === 'untold') {
      return this.#endWith(this.beginFlush(effect === 'untold'), open.isInTransaction && !isPinned, open)
    }
    // Whoever pins a connection sends everything over it, and follows itself what it has open.
    if (isPinned) return pass
    switch (effect) {
      case 'names': {
        const copies = open.isInTransaction ? undefined : connection.space?.ownCopies
        return copies === undefined ? pass : { kind: 'rewrite', isOurs: (name) => copies.has(name) }
      }
      case 'multi':
        open.isInTransaction = true
        return pass
      case 'end': {
        const end = open.endTransaction()
        return end === undefined ? pass : { kind: 'guarded', end }
      }
      case 'unwatch':
        open.isWatching = false
        return pass
      case 'asking':
        open.isAsking = true
        return pass
      case 'select':
        connection.select(args.numberAt(1))
        return pass
      case 'reset':
        open.reset()
        connection.select(0)
        // Where a password is asked for, nobody is logged in now.
        open.isStranger = connection.space?.upstream.credentials().password !== undefined
        return pass
      case 'auth':
        if (!isHandshake) this.#logIn(connection, args.length > 2 ? request.textAt(1) : defaultUser)
        return pass
      case 'hello':
        for (let index = 2; !isHandshake && index < args.length - 1; index++) {
          if (args.isWord(index, 'AUTH')) this.#logIn(connection, request.textAt(index + 1))
        }
        return pass
    }
  }

  /** What the shield reads as its own user is not for others; the same user again, with a new password, changes nothing. */
  #logIn({ open, space }: ConnectionFacts, user: string): void {
    open.isStranger = space !== undefined && user !== (space.upstream.credentials().username ?? defaultUser)
  }
}

const defaultUser = 'default'
const ignoreReply = () => {}
