import { keyName } from '@firebreak/core'
import { type CommandRow, commandOf } from '@firebreak/core/commands'
import {
  type ByteAccesses,
  type CachedReply,
  type ClusterShield,
  type HotKey,
  isCounterRow,
  type KeySpace,
  type LimitTurn,
  type Verdict,
} from '@firebreak/shield'
import type { ClientConnection } from '../client/client-connection.ts'
import type { ProxyCommand } from '../commands/proxy-command.ts'
import type { PinnedLane } from '../lanes/pinned-lane.ts'
import { repeatsEnd } from '../requests/repeats.ts'
import type { Identity } from '../upstream/identity.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'
import { answerOf, bytesFor, type CachedAnswer, maxRepeatedBytes, rowOf } from './cached-answer.ts'
import { CopyFilter } from './copy-filter.ts'
import { limitReply } from './limit-reply.ts'
import { ProxyRequest } from './proxy-request.ts'
import { ProxyUpstream, type Whereabouts } from './proxy-upstream.ts'
import { WriteGuard } from './write-guard.ts'

/** What happened to a request: it was `answered` here, it is `held` and will return, or its reply goes to a target. */
export type Seen = 'answered' | 'held' | ReplyTarget

const noReply = Buffer.from('*0\r\n')
const oneReply = Buffer.from('*1\r\n')
const getRow = commandOf('GET')!

/**
 * The shield in the proxy: sees every request before it is sent, counts its keys, answers reads of hot keys from
 * memory, and ensures that no read bypasses a write.
 *
 * A client reads hot keys only as itself: its user and database are part of the cache key, and the reply was read by a
 * connection with its own credentials.
 */
export class ProxyShield {
  readonly #cluster: ClusterShield
  readonly #where: Whereabouts
  readonly #ownIdentity: Identity
  readonly #accesses: ByteAccesses
  readonly #request: ProxyRequest
  readonly #upstreams = new Map<string, ProxyUpstream>()
  /** True if the current request was answered from memory, and an identical one would be too. */
  canRepeat = false
  /** What answered it. */
  #lastHot: HotKey | undefined
  #lastReply: CachedReply | undefined
  #lastAnswer: CachedAnswer | undefined
  /** Reads answered from memory. */
  localHits = 0
  /** Requests that a limit refused, delayed, or answered with an older value. */
  readonly limited = { rejected: 0, waited: 0, stale: 0 }

  constructor(cluster: ClusterShield, where: Whereabouts, ownIdentity: Identity) {
    this.#cluster = cluster
    this.#accesses = cluster.byBytes
    this.#request = new ProxyRequest(cluster)
    this.#where = where
    this.#ownIdentity = ownIdentity
  }

  /** Increments merged into another command. */
  get combined(): number {
    return this.#request.combined
  }

  /** Called after a change through this proxy that no watcher is notified about. */
  set onUntold(listener: (() => void) | undefined) {
    this.#cluster.gate.onUntold = listener
  }

  /** False while the kill switch is on: the proxy is a plain one. */
  get isActive(): boolean {
    return this.#cluster.isActive
  }

  /** The keys of a client's database as its user may read them. */
  spaceOf(identity: Identity, database: number): KeySpace {
    if (identity.id === this.#ownIdentity.id) return this.#cluster.space(database)
    let upstream = this.#upstreams.get(identity.id)
    if (upstream === undefined) {
      upstream = new ProxyUpstream(this.#where, identity)
      this.#upstreams.set(identity.id, upstream)
    }
    return this.#cluster.space(database, { id: identity.id, upstream })
  }

  /** The memory that holds a client's requests is about to be reused. */
  settle(): void {
    this.#accesses.settle()
  }

  /** Sees the current request, which is about to go over a shared connection. */
  see(client: ClientConnection, command: ProxyCommand, target: ReplyTarget): Seen {
    const { keyIndex } = command
    const { parser } = client
    const { length } = parser
    if (keyIndex === 0 || keyIndex >= length || !this.#cluster.isCold || client.limitPass !== undefined) {
      return this.#look(client, command, target)
    }
    // Nearly always nothing is hot, so there is nothing to look up, and the key is hashed when it is counted.
    const start = parser.startOf(keyIndex)
    const written = command.isRead ? -1 : parser.endOf(length - 1) - start
    this.#accesses.note(parser.bytes, start, parser.endOf(keyIndex), written)
    return target
  }

  #look(client: ClientConnection, command: ProxyCommand, target: ReplyTarget): Seen {
    const { row, keyIndex, isRead } = command
    if (!this.isActive) return target
    const { parser, combined } = client
    if (keyIndex === 0 || row === undefined) {
      // It may touch any key, or none.
      if (combined?.settle(undefined, true) === false) return this.#await(client)
      if (row === undefined) return target
    }
    const { bytes, length } = parser
    if (keyIndex > 0) {
      if (keyIndex >= length) return target
      const start = parser.startOf(keyIndex)
      const end = parser.endOf(keyIndex)
      const hash = this.#accesses.take(bytes, start, end)
      const table = client.keySpace().byBytes
      const hot = table.size === 0 ? undefined : table.find(bytes, start, end, hash)
      if (hot !== undefined && row === getRow && length === 2 && this.#answerGet(client, hot)) return 'answered'
      if (combined?.isOpen && !this.#goesWith(hot, row) && !combined.settle(hot)) return this.#await(client)
      if (client.limitPass === undefined) {
        const written = isRead ? -1 : parser.endOf(length - 1) - start
        this.#accesses.noteTaken(bytes, start, end, written, hash)
      }
      if (hot === undefined) {
        // It was in the queue of a limit that no longer exists.
        client.limitPass = undefined
        return target
      }
      this.#request.found = hot
    }
    const verdict = this.#ask(client, command, row, false)
    client.limitPass = undefined
    return this.#carryOut(client, row, verdict, target)
  }

  /** True if a command joins the increments before it, or the gate sends it after them. */
  #goesWith(hot: HotKey | undefined, row: CommandRow): boolean {
    return hot?.isCombined === true && isCounterRow(row)
  }

  /** The current request waits until all earlier ones are answered, and is then seen again. */
  #await(client: ClientConnection): Seen {
    client.waitForReplies()
    return 'held'
  }

  /** The reply that a client's GET of a key would now get from memory, in an array; empty if there is none. */
  peek(client: ClientConnection, key: Uint8Array): Uint8Array {
    const hot = client.keySpace().hot.get(keyName(key))
    const reply = hot === undefined || this.#cluster.gate.isFlushing ? undefined : hot.peek('GET', this.#cluster.now())
    if (reply === undefined) return noReply
    return Buffer.concat([oneReply, bytesFor(client.session.version, getRow, reply)])
  }

  /** Nearly every read of a hot key: a GET whose reply is in memory. */
  #answerGet(client: ClientConnection, hot: HotKey): boolean {
    const request = this.#request.of(client)
    if (!hot.isCached || hot.isGated || !this.#cluster.gate.mayServe(hot, request)) return false
    const reply = hot.hit('GET', request.now())
    if (reply === undefined) return false
    hot.uncounted++
    this.localHits++
    const answer = answerOf(reply, client.session.version)
    client.answerNow(answer.row ?? answer.bytes, answer.bytes.length)
    this.canRepeat = answer.bytes.length <= maxRepeatedBytes && client.slots.owed === 0
    this.#lastHot = hot
    this.#lastReply = reply
    this.#lastAnswer = answer
    return true
  }

  /**
   * Answers the requests after the last one that are identical to it, as when many clients share a connection and read
   * one hot key. The last one is in `bytes` from `start` to `next`; returns the offset after the answered ones.
   */
  repeat(client: ClientConnection, bytes: Buffer, start: number, next: number, end: number): number {
    const at = repeatsEnd(bytes, start, next, end)
    if (at === next) return next
    const count = (at - next) / (next - start)
    const hot = this.#lastHot!
    hot.hitAgain(this.#lastReply!, count)
    hot.uncounted += count
    this.localHits += count
    const answer = this.#lastAnswer!
    const { length } = answer.bytes
    const begun = answer.row
    const row = (answer.row ??= rowOf(answer.bytes))
    // After the first answer, if that is part of the row: then all of them are sent in one piece.
    let from = begun === undefined ? 0 : length
    for (let left = count * length; left > 0; from = 0) {
      const to = Math.min(row.length, from + left)
      client.outlet.put(row, from, to, true)
      left -= to - from
    }
    return at
  }

  /** Sees a request that goes over the client's own connection: it is counted, and writes are guarded. */
  seePinned(client: ClientConnection, command: ProxyCommand, pinned: PinnedLane): void {
    if (command.row === undefined) return
    const verdict = this.#ask(client, command, command.row, true)
    client.limitPass = undefined
    if (verdict.kind === 'guarded') pinned.whenSettled(verdict.end)
  }

  /**
   * Like `seePinned`, for a request whose last arguments have not arrived yet: it may be unknown which keys it writes.
   */
  seeLarge(client: ClientConnection, command: ProxyCommand, pinned: PinnedLane): void {
    this.seePinned(client, command, pinned)
    const { row } = command
    if (row !== undefined && row.keys.length > 0 && !row.hasSingleKey)
      pinned.whenSettled(this.#cluster.gate.beginFlush())
  }

  #ask(client: ClientConnection, command: ProxyCommand, row: CommandRow, isPinned: boolean): Verdict {
    const request = this.#request.set(client, command, row, isPinned)
    return this.#cluster.gate.ask(request, request)
  }

  /** Carries out the gate's verdict on the current request. */
  #carryOut(client: ClientConnection, row: CommandRow, verdict: Verdict, target: ReplyTarget): Seen {
    switch (verdict.kind) {
      case 'pass':
        return target
      case 'guarded':
        return new WriteGuard(target, verdict.end)
      case 'rewrite':
        return new CopyFilter(client, target, verdict.isOurs)
      case 'loading':
      case 'combined':
        client.slots.take()
        return 'answered'
      case 'answer':
        if (verdict.isStale) this.limited.stale++
        else this.localHits++
        client.answerNow(bytesFor(client.session.version, row, verdict.reply))
        return 'answered'
      case 'refuse':
        this.limited.rejected++
        client.answerNow(limitReply(verdict.strategy, verdict.error))
        return 'answered'
      case 'hold':
        this.#hold(client, verdict)
        return 'held'
    }
  }

  /** A request that waits for its turn holds up the following ones, and is seen again. */
  #hold(client: ClientConnection, { until, strategy }: Extract<Verdict, { kind: 'hold' }>): void {
    const letGo = (turn: LimitTurn) => {
      client.limitPass = turn
      client.letGo()
    }
    client.hold()
    until.then(() => {
      if (strategy.onLimit === 'wait') this.limited.waited++
      letGo('paid')
    }, letGo)
  }

  /** Cached replies must not be served any more. */
  forget(): void {
    this.#cluster.flush()
  }
}
