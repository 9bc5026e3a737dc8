import type { Timers } from '@firebreak/core'
import { type CommandRow, isCacheable } from '@firebreak/core/commands'
import type { HotKey } from '../cache/hot-key.ts'
import type { ReadCommand } from '../cache/read-command.ts'
import { type CounterCommand, counterCommandOf } from '../combine/counter-command.ts'
import { KeyLimitedError } from '../errors.ts'
import type { Tally } from '../status/tally.ts'
import type { Trouble } from '../trouble/trouble.ts'
import type { ClusterHotKeys } from './cluster-hot-keys.ts'
import type { ConnectionFacts } from './connection-facts.ts'
import type { GateRequest } from './gate-request.ts'
import { KeySurvey } from './key-survey.ts'
import { keylessEffect } from './keyless.ts'
import type { OpenState } from './open-state.ts'
import { ReadsAround } from './reads-around.ts'
import { combined, type End, loading, pass, type Verdict } from './verdict.ts'

/**
 * Decides what happens to an application's command: one gate for each Redis, asked by the hooks of every client library
 * and by the proxy.
 *
 * *Order.* Redis answers a connection's commands in the order in which they were sent, and applications rely on that.
 * So a read is answered here only if nothing sent before it can have changed its key: no write of the key and no flush
 * is in flight, and the connection has nothing open that ties it to Redis.
 *
 * *Cost.* A command while nothing is hot, and the GET of a hot key that is in memory, are most of what an application
 * sends; adapters handle those two without coming here.
 */
export class Gate {
  readonly #keys: ClusterHotKeys
  readonly #tally: Tally
  readonly #trouble: Trouble
  readonly #survey = new KeySurvey()
  readonly #around: ReadsAround
  #pendingFlushes = 0
  /** Called after a change by this process that no watcher is notified about. */
  onUntold: (() => void) | undefined

  constructor(keys: ClusterHotKeys, tally: Tally, timers: Timers, trouble: Trouble) {
    this.#keys = keys
    this.#tally = tally
    this.#trouble = trouble
    this.#around = new ReadsAround(timers)
  }

  /** True while a command that changes keys without naming them is in flight: no cached reply may be served. */
  get isFlushing(): boolean {
    return this.#pendingFlushes > 0
  }

  /** Whether a read of a hot key may currently be answered here. */
  mayServe(hot: HotKey, connection: ConnectionFacts): boolean {
    return (
      hot.pendingWrites === 0 &&
      this.#pendingFlushes === 0 &&
      connection.isReady &&
      !connection.open.isBinding &&
      connection.isBehind?.(hot) !== true
    )
  }

  /** What to do with a command that is about to use a connection. */
  ask(request: GateRequest, connection: ConnectionFacts): Verdict {
    try {
      return this.#judge(request, connection)
    } catch (error) {
      return this.passAfter(error, isRead(request.row), connection)
    }
  }

  /**
   * The verdict on a command that could not be judged: our own failure is not the application's, so it is sent. Unless
   * it only reads, it may have changed any key, and nothing is served from memory before its answer.
   */
  passAfter(error: unknown, isRead: boolean, { open, isPinned }: ConnectionFacts): Verdict {
    this.#trouble.note('hook', 'a command could not be judged; it was sent to Redis unchanged', error)
    if (isRead) return pass
    let end: End | undefined
    // If even that fails, nothing is served any more.
    this.#trouble.attempt(() => {
      end = this.beginFlush()
    })
    return end === undefined ? pass : this.#endWith(end, open.isInTransaction && !isPinned, open)
  }

  #judge(request: GateRequest, connection: ConnectionFacts): Verdict {
    const { row } = request
    const { open } = connection
    if (row.keys.length === 0) {
      connection.owner?.waiting?.flush()
      return this.#keyless(request, connection)
    }
    if (row.name === 'WATCH' && !connection.isPinned) open.isWatching = true
    if (row.access === 'none' && row.flags.has('scripting')) connection.sendsScript?.()
    const { read, readIndex, written, limited } = this.#survey.of(request)
    const isAsking = open.isAsking
    open.isAsking = false
    if (limited !== undefined && !open.isInTransaction && !connection.isPinned) {
      const verdict = this.#limit(request, limited, written === undefined ? readIndex : 0, connection)
      if (verdict !== undefined) return verdict
    }
    if (written !== undefined && !isAsking && this.#combine(request, written, connection)) return combined
    // What is waiting was sent before this.
    connection.owner?.waiting?.flush()
    if (written !== undefined) return this.#guard(request, written, connection)
    if (read === undefined || connection.isPinned || !read.isServed || !isCacheable(row, request.args)) return pass
    // EXEC compares what was read under WATCH, which the application knows from then on.
    const isCompared = open.isWatching && !open.isInTransaction
    if (isAsking || isCompared || !request.isAnswerable || !this.mayServe(read, connection)) return this.#bypass(read)
    return this.#serve(request, read, readIndex, connection.now(), open)
  }

  /** Serves nothing from the cache until the returned function is called: what is being sent may change any key. */
  beginFlush(isUntold = false): () => void {
    this.#pendingFlushes++
    this.#keys.abandon()
    return () => {
      this.#keys.flush()
      this.#pendingFlushes--
      if (isUntold) this.onUntold?.()
    }
  }

  /**
   * Asks the limits of all keys; undefined if the command may proceed. `readIndex`: its key if it only reads, otherwise
   * 0.
   */
  #limit(
    request: GateRequest,
    limited: readonly HotKey[],
    readIndex: number,
    connection: ConnectionFacts,
  ): Verdict | undefined {
    const { row, args, turn, canWait } = request
    const [first] = limited
    const { strategy, keepsLast } = first!.limit!
    let error = turn
    if (error instanceof Error && !(error instanceof KeyLimitedError) && !isAborted(request)) {
      // Nobody was refused: the limit itself failed.
      this.#trouble.failed(error)
      error = 'paid'
    }
    const caller = connection.caller && (() => connection.caller!())
    if (error === undefined) {
      const waits: Promise<void>[] = []
      for (const { limit } of limited) {
        const answer = limit!.admit(canWait, request.signal, caller)
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
    const isKept = keepsLast && readIndex > 0 && isCacheable(row, args)
    const last = isKept ? first!.lastReply(request.readOf(first!, readIndex).id) : undefined
    return last === undefined ? { kind: 'refuse', error, strategy } : { kind: 'answer', reply: last, isStale: true }
  }

  #serve(request: GateRequest, hot: HotKey, keyIndex: number, now: number, open: OpenState): Verdict {
    const read = request.readOf(hot, keyIndex)
    const reply = hot.hit(read.id, now)
    if (reply !== undefined) return { kind: 'answer', reply, isStale: false }
    if (!request.canWait) return this.#bypass(hot, read)
    const reader = request.whenLoaded()
    // A read that a load gives back bypasses memory like one that never waited.
    const answered = this.#trouble.guarded(() => this.#around.answered(hot, undefined))
    const isLoading = open.load(
      (handler) => hot.load(read, now, handler),
      // If the reply cannot be given, Redis is asked.
      (reply) => {
        this.#trouble.attempt(
          () => reader(reply, answered),
          () => reader(undefined, answered),
        )
      },
    )
    return isLoading ? loading : this.#bypass(hot)
  }

  /**
   * The read bypasses memory, and may see something newer than what is kept, which a push outdates only later, or
   * nothing does if tracking is refused: what was read before its answer is not served after it. With `wanted` the next
   * read finds the reply here.
   */
  #bypass(hot: HotKey, wanted?: ReadCommand): Verdict {
    hot.bypassed()
    this.#tally.bypasses++
    if (wanted === undefined && !hot.isConsistent && hot.copies === undefined) return pass
    return { kind: 'guarded', end: this.#trouble.guarded(() => this.#around.answered(hot, wanted)) }
  }

  /** True if an increment is merged with others. */
  #combine(request: GateRequest, written: readonly HotKey[], connection: ConnectionFacts): boolean {
    const [hot] = written
    const { open } = connection
    if (connection.combining === undefined || written.length > 1 || !hot!.isCombined || connection.isPinned)
      return false
    if (!connection.isReady || open.isBinding || !request.isAnswerable || !request.canWait) return false
    const command = counterOf(request)
    if (command === undefined) return false
    const field = command.fieldAt === 0 ? undefined : request.bytesAt(command.fieldAt)
    connection.combining(hot!).join(hot!, field, request.partOf(command))
    return true
  }

  #guard(request: GateRequest, named: readonly HotKey[], { open, isPinned }: ConnectionFacts): Verdict {
    // It may reach the keys of these names in another database.
    const written = open.isUnsettled || reachesFurther.has(request.row.name) ? this.#keys.everywhere(named) : named
    const settle = open.isUnsettled ? open.beginUnsettled() : undefined
    for (const hot of written) {
      // The combined increments already account for a separate one.
      if (hot.isCombined && counterOf(request) === undefined) hot.epoch++
      hot.beginWrite()
    }
    const end = () => {
      for (const hot of written) this.#trouble.attempt(() => hot.endWrite())
      settle?.()
    }
    return this.#endWith(end, open.isInTransaction && !isPinned, open)
  }

  /** What a transaction queues takes effect at EXEC. */
  #endWith(end: End, isQueued: boolean, open: OpenState): Verdict {
    const guarded = this.#trouble.guarded(end)
    if (!isQueued) return { kind: 'guarded', end: guarded }
    open.hold(guarded)
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
    // An owner that pins a connection sends everything over it, and tracks its open state itself.
    if (isPinned) return pass
    switch (effect) {
      case 'names': {
        const copies = open.isInTransaction ? undefined : connection.space?.ownCopies
        return copies === undefined ? pass : { kind: 'rewrite', isOurs: copies.listing() }
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
        return this.#change(open, connection.select(args.numberAt(1)))
      case 'reset':
        return this.#reset(connection)
      case 'auth':
        return isHandshake ? pass : this.#logIn(connection, args.length > 2 ? request.textAt(1) : defaultUser)
      case 'hello':
        for (let index = 2; !isHandshake && index < args.length - 1; index++) {
          if (args.isWord(index, 'AUTH')) return this.#logIn(connection, request.textAt(index + 1))
        }
        return pass
    }
  }

  /**
   * What the shield reads as its own user is not for others; the same user again, with a new password, changes nothing.
   */
  #logIn({ open, space }: ConnectionFacts, user: string): Verdict {
    const isStranger = space !== undefined && user !== (space.upstream.credentials().username ?? defaultUser)
    return this.#change(open, () => {
      open.isStranger = isStranger
    })
  }

  /** A change of database or user is being sent: it applies once its answer says that it happened. */
  #change(open: OpenState, apply: () => void): Verdict {
    const isQueued = open.isInTransaction
    const settle = open.beginUnsettled()
    const end = (reply: unknown) => {
      settle()
      const happened = isQueued ? didHappen(reply) : !(reply instanceof Error)
      if (happened === undefined) open.isUnknown = true
      else if (happened) apply()
    }
    return this.#endWith(end, isQueued, open)
  }

  /** RESET is never queued: it ends a transaction, and the user is the default one again. */
  #reset(connection: ConnectionFacts): Verdict {
    const { open, space } = connection
    const endTransaction = open.endTransaction()
    const select = connection.select(0)
    const settle = open.beginUnsettled()
    const end = (reply: unknown) => {
      endTransaction?.(reply)
      settle()
      if (reply instanceof Error) return
      open.isAsking = open.isUnknown = false
      select()
      // If a password is required, nobody is logged in now.
      open.isStranger = space?.upstream.credentials().password !== undefined
    }
    return { kind: 'guarded', end: this.#trouble.guarded(end) }
  }
}

/** True if a command cannot change anything. */
export function isRead(row: CommandRow | undefined): boolean {
  return row?.access === 'read' && row.keys.length > 0
}

function isAborted({ signal }: GateRequest): boolean {
  return signal?.aborted === true
}

const defaultUser = 'default'

/** Commands that write a key of the same name in another database. */
const reachesFurther: ReadonlySet<string> = new Set(['MOVE', 'COPY'])

/**
 * Whether a transaction's queued commands took effect, by the reply to EXEC or DISCARD; undefined if some failed, since
 * it is not known which.
 */
function didHappen(reply: unknown): boolean | undefined {
  if (!Array.isArray(reply)) return false
  return reply.some((part) => part instanceof Error) ? undefined : true
}

function counterOf(request: GateRequest): CounterCommand | undefined {
  return counterCommandOf(request.row, request.args, (index) => request.textAt(index))
}
