import { type CommandRow, commandOf, encodeCommand, forEachKey, isCacheable, keyName } from '@firebreak/core'
import type { ByteAccesses, CachedReply, ClusterShield, HotKey, KeyLimitedError, KeySpace } from '@firebreak/shield'
import type { ClientConnection } from '../client/client-connection.ts'
import type { ProxyCommand } from '../commands/proxy-command.ts'
import type { PinnedLane } from '../lanes/pinned-lane.ts'
import { repeatsEnd } from '../requests/repeats.ts'
import type { Identity } from '../upstream/identity.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'
import { type Answer, answerOf, asResp2, maxRepeatedBytes, rowOf } from './answer.ts'
import { limitReply } from './limit-reply.ts'
import { ProxyUpstream, type Whereabouts } from './proxy-upstream.ts'
import { getOf, readOf } from './read-of.ts'
import { WriteGuard } from './write-guard.ts'

/** What is done with a request: it is `answered` here, it is `held` and will come again, or its reply goes to a target. */
export type Seen = 'answered' | 'held' | ReplyTarget

const noReply = Buffer.from('*0\r\n')
const oneReply = Buffer.from('*1\r\n')
/** So long the shield's time goes on with that of the event loop's turns. */
const anchorForMs = 100
const getRow = commandOf('GET')
const none: readonly HotKey[] = []

/** Commands that change which value a key has, or who may read it, and no watcher is told. */
const untold: ReadonlySet<string> = new Set(['SWAPDB', 'ACL SETUSER', 'ACL DELUSER', 'ACL LOAD'])
/** Commands that change keys without naming them, or who may read them. */
const flushes: ReadonlySet<string> = new Set(['FLUSHALL', 'FLUSHDB', ...untold])

/**
 * The shield's place in the proxy: sees every request before it is sent, counts its keys, answers reads of hot keys from
 * memory, and sees to it that nobody reads around a write.
 *
 * A client reads hot keys only as itself: its user and database are part of where a reply is kept, and the reply was
 * read by a connection with its own credentials.
 */
export class ProxyShield {
  readonly #cluster: ClusterShield
  readonly #where: Whereabouts
  readonly #ownIdentity: Identity
  readonly #accesses: ByteAccesses
  readonly #upstreams = new Map<string, ProxyUpstream>()
  #pendingFlushes = 0
  /** True where the request at hand was answered from memory, and the same one again would be so too. */
  canRepeat = false
  /** What answered it. */
  #lastHot: HotKey | undefined
  #lastReply: CachedReply | undefined
  #lastAnswer: Answer | undefined
  #anchorMs = Number.NEGATIVE_INFINITY
  #anchorNow = 0
  /** Reads answered from memory. */
  localHits = 0
  /** Called after a change through this proxy of which no watcher is told. */
  onUntold: (() => void) | undefined
  /** Requests that a limit refused, made wait, or answered with what was true before. */
  readonly limited = { rejected: 0, waited: 0, stale: 0 }

  constructor(cluster: ClusterShield, where: Whereabouts, ownIdentity: Identity) {
    this.#cluster = cluster
    this.#accesses = cluster.byBytes
    this.#where = where
    this.#ownIdentity = ownIdentity
  }

  /** False while the kill switch is thrown: the proxy is a plain one. */
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

  /** The bytes that a client's requests stand in are about to be another's. */
  settle(): void {
    this.#accesses.settle()
  }

  /** Sees the request at hand, which is about to go over a shared connection. */
  see(client: ClientConnection, command: ProxyCommand, target: ReplyTarget): Seen {
    const { keyIndex } = command
    const { parser } = client
    const { length } = parser
    if (keyIndex === 0 || keyIndex >= length || !this.#cluster.isCold || client.limitPass !== undefined) {
      return this.#look(client, command, target)
    }
    // Nearly always: nothing is hot, so there is nothing to look for, and the key is hashed when it is counted.
    const start = parser.startOf(keyIndex)
    const written = command.isRead ? -1 : parser.endOf(length - 1) - start
    this.#accesses.note(parser.bytes, start, parser.endOf(keyIndex), written)
    return target
  }

  #look(client: ClientConnection, command: ProxyCommand, target: ReplyTarget): Seen {
    const { row, keyIndex, isRead } = command
    if (row === undefined || !this.isActive) return target
    if (keyIndex === 0) return this.#seeOther(client, command, row, target)
    const { parser } = client
    const { bytes, length } = parser
    if (keyIndex >= length) return target
    const start = parser.startOf(keyIndex)
    const end = parser.endOf(keyIndex)
    const hash = this.#accesses.take(bytes, start, end)
    const table = client.keySpace().byBytes
    const hot = table.size === 0 ? undefined : table.find(bytes, start, end, hash)
    if (hot !== undefined && row === getRow && length === 2 && this.#answerGet(client, hot)) return 'answered'
    if (client.limitPass === undefined) {
      const written = isRead ? -1 : parser.endOf(length - 1) - start
      this.#accesses.noteTaken(bytes, start, end, written, hash)
    }
    if (hot !== undefined) return this.#handle(client, command, row, hot, keyIndex, isRead ? none : [hot], target)
    // It stood in the line of a limit that is no more.
    client.limitPass = undefined
    return target
  }

  /** What a client's GET of a key would be answered from memory now: an array of that one reply, or of none. */
  peek(client: ClientConnection, key: Uint8Array): Uint8Array {
    const hot = client.keySpace().hot.get(keyName(key))
    const reply = hot === undefined || this.#pendingFlushes > 0 ? undefined : hot.peek('GET', this.#cluster.now())
    if (reply === undefined) return noReply
    return Buffer.concat([oneReply, client.session.version === 3 ? reply.bytes : asResp2('GET', reply)])
  }

  /**
   * True where only Redis can answer: something was sent before that may have changed the key, and nobody saw which key
   * it changes. That is a flush of any client, a script of this one, or what it sent before the key was hot.
   */
  #mustAsk(client: ClientConnection, { ordinal }: HotKey): boolean {
    if (ordinal > client.youngestHot) {
      client.youngestHot = ordinal
      client.slots.setFence()
    }
    return this.#pendingFlushes > 0 || client.slots.isBehindFence
  }

  /** Nearly every read of a hot key: its GET is in memory. */
  #answerGet(client: ClientConnection, hot: HotKey): boolean {
    if (!hot.isCached || this.#mustAsk(client, hot)) return false
    const reply = hot.hit('GET', this.#now(client.host.turn.nowMs))
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
   * Answers the requests that follow the last one and are the same: of many who share a connection and read one hot key.
   * The last one stands in `bytes` from `start` to `next`; gives the offset behind those that are answered.
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
    // Behind the first answer, where that is part of the row: then all of them go out in one piece.
    let from = begun === undefined ? 0 : length
    for (let left = count * length; left > 0; from = 0) {
      const to = Math.min(row.length, from + left)
      client.outlet.put(row, from, to, true)
      left -= to - from
    }
    return at
  }

  /** Sees a request that goes over a connection of the client's own: it is counted, and writes are guarded. */
  seePinned(client: ClientConnection, command: ProxyCommand, pinned: PinnedLane): void {
    const { row } = command
    if (row === undefined) return
    const isAgain = client.limitPass !== undefined
    client.limitPass = undefined
    if (flushes.has(row.name)) {
      pinned.whenSettled(this.#beginFlush(row))
      return
    }
    forEachKey(row, client.args, (index, access) => {
      const found = this.#find(client, index, access === 'write', isAgain)
      if (found === undefined || access !== 'write') return
      this.#cluster.beginWrite(found)
      pinned.whenSettled(() => this.#cluster.endWrite(found))
    })
  }

  /** As `seePinned`, of a request whose last arguments are not there yet: which keys it writes may not be known. */
  seeLarge(client: ClientConnection, command: ProxyCommand, pinned: PinnedLane): void {
    this.seePinned(client, command, pinned)
    const { row } = command
    if (row !== undefined && row.keys.length > 0 && !row.hasSingleKey) pinned.whenSettled(this.#beginFlush(row))
  }

  /**
   * Counts an access of the key at an argument, unless the request stood in a limit's line and comes again; gives the key
   * where it is hot. One hash serves both.
   */
  #find(client: ClientConnection, index: number, isWrite: boolean, isAgain: boolean): HotKey | undefined {
    const { parser } = client
    const { bytes } = parser
    const start = parser.startOf(index)
    const end = parser.endOf(index)
    const accesses = this.#accesses
    const hash = accesses.take(bytes, start, end)
    if (!isAgain) accesses.noteTaken(bytes, start, end, isWrite ? 0 : -1, hash)
    const hot = client.keySpace().byBytes
    return hot.size === 0 ? undefined : hot.find(bytes, start, end, hash)
  }

  #seeOther(client: ClientConnection, command: ProxyCommand, row: CommandRow, target: ReplyTarget): Seen {
    if (row.keys.length === 0) return flushes.has(row.name) ? new WriteGuard(target, this.#beginFlush(row)) : target
    // A script may write keys that it does not name.
    if (command.way === 'script' && command.isWrite) client.slots.setFence(1)
    const written: HotKey[] = []
    const isAgain = client.limitPass !== undefined
    let hot: HotKey | undefined
    let keyIndex = 0
    forEachKey(row, client.args, (index, access) => {
      const found = this.#find(client, index, access === 'write', isAgain)
      if (found === undefined) return
      if (access === 'write') written.push(found)
      // A limit on one of them is a limit on the command.
      if (hot?.limit !== undefined) return
      hot = found
      keyIndex = index
    })
    if (hot !== undefined) return this.#handle(client, command, row, hot, keyIndex, written, target)
    client.limitPass = undefined
    return target
  }

  #handle(
    client: ClientConnection,
    command: ProxyCommand,
    row: CommandRow,
    hot: HotKey,
    keyIndex: number,
    written: readonly HotKey[],
    target: ReplyTarget,
  ): Seen {
    if (hot.limit !== undefined) return this.#limit(client, command, row, hot, keyIndex, written, target)
    // It stood in the line of a limit that is no more.
    client.limitPass = undefined
    if (written.length > 0) return this.#guard(written, target)
    if (!hot.isServed || !isCacheable(row, client.args)) return target
    return this.#serve(client, command, row, hot, keyIndex) ? 'answered' : target
  }

  #serve(client: ClientConnection, command: ProxyCommand, row: CommandRow, hot: HotKey, keyIndex: number): boolean {
    if (this.#mustAsk(client, hot)) return false
    const now = this.#now(client.host.turn.nowMs)
    const isGet = row.name === 'GET' && client.args.length === 2
    const read = isGet ? undefined : readOf(client, row, keyIndex)
    const reply = hot.hit(read?.id ?? 'GET', now)
    const { version } = client.session
    if (reply !== undefined) {
      this.localHits++
      client.answerNow(version === 3 ? reply.bytes : asResp2(row.name, reply))
      return true
    }
    const slot = client.slots.next
    const request = encodeCommand(client.request.list())
    const isLoading = hot.load(read ?? getOf(hot), now, (loaded) => {
      if (client.isClosed) return
      if (loaded !== undefined) client.answer(slot, version === 3 ? loaded.bytes : asResp2(row.name, loaded))
      else client.sendInto(slot, command, request)
    })
    if (!isLoading) {
      hot.redisReads++
      this.#cluster.tally.bypasses++
      return false
    }
    client.slots.take()
    return true
  }

  /** The shield's time at a time of the turn's clock. Both run alike: its own is read now and then only. */
  #now(turnMs: number): number {
    if (turnMs - this.#anchorMs >= anchorForMs) {
      this.#anchorMs = turnMs
      this.#anchorNow = this.#cluster.now()
    }
    return this.#anchorNow + (turnMs - this.#anchorMs)
  }

  /** Asks the key's limit. A request that has to wait for the answer holds up those behind it, and comes again. */
  #limit(
    client: ClientConnection,
    command: ProxyCommand,
    row: CommandRow,
    hot: HotKey,
    keyIndex: number,
    written: readonly HotKey[],
    target: ReplyTarget,
  ): Seen {
    const limit = hot.limit!
    const pass = client.limitPass
    client.limitPass = undefined
    const verdict = pass === undefined ? limit.admit(true, client.gone) : pass === 'paid' ? undefined : pass
    if (verdict instanceof Promise) {
      client.hold()
      verdict.then(
        () => {
          if (limit.strategy.onLimit === 'wait') this.limited.waited++
          client.limitPass = 'paid'
          client.letGo()
        },
        (error: KeyLimitedError) => {
          client.limitPass = error
          client.letGo()
        },
      )
      return 'held'
    }
    const isRead = written.length === 0 && isCacheable(row, client.args)
    if (verdict === undefined) {
      if (written.length > 0) return this.#guard(written, target)
      return isRead && limit.keepsLast && this.#serve(client, command, row, hot, keyIndex) ? 'answered' : target
    }
    const last = isRead && limit.keepsLast ? hot.lastReply(readOf(client, row, keyIndex).id) : undefined
    if (last !== undefined) {
      this.limited.stale++
      client.answerNow(client.session.version === 3 ? last.bytes : asResp2(row.name, last))
    } else {
      this.limited.rejected++
      client.answerNow(limitReply(limit.strategy, verdict))
    }
    return 'answered'
  }

  #guard(hots: readonly HotKey[], target: ReplyTarget): ReplyTarget {
    for (const hot of hots) this.#cluster.beginWrite(hot)
    return new WriteGuard(target, () => {
      for (const hot of hots) this.#cluster.endWrite(hot)
    })
  }

  /** Nothing that is kept may be served any more. */
  forget(): void {
    this.#cluster.flush()
  }

  /** Nothing that is kept is served until the returned function is called: what was sent may have changed any key. */
  #beginFlush({ name }: CommandRow): () => void {
    this.#pendingFlushes++
    this.#cluster.abandon()
    return () => {
      this.#pendingFlushes--
      this.forget()
      if (untold.has(name)) this.onUntold?.()
    }
  }
}
