import { encodeCommand } from '@firebreak/core/resp'
import { type IsOurs, maxDraws, wholeScan } from '@firebreak/shield'
import type { ProxyClient } from '../client/proxy-client.ts'
import type { UpstreamLostError } from '../errors.ts'
import type { ReplyTarget, SharedLane } from '../upstream/shared-lane.ts'

const bulk = 0x24
const list = 0x2a
const drawAgain = encodeCommand(['RANDOMKEY'])
const scanAll = encodeCommand(wholeScan)

/**
 * Removes copies and their auxiliary keys from the reply to KEYS, SCAN or RANDOMKEY. The number of names comes first,
 * so the reply is held until it is complete; one longer than a client's held bytes passes through unchanged.
 */
export class CopyFilter implements ReplyTarget {
  readonly #client: ProxyClient
  readonly #target: ReplyTarget
  readonly #isOurs: IsOurs
  #pieces: Buffer[] = []
  #held = 0
  #isTooLong = false
  #draws = 0

  constructor(client: ProxyClient, target: ReplyTarget, isOurs: IsOurs) {
    this.#client = client
    this.#target = target
    this.#isOurs = isOurs
  }

  onReply(tag: number, bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void {
    if (this.#isTooLong) {
      this.#target.onReply(tag, bytes, start, end, isLast, type)
      return
    }
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)))
    this.#held += end - start
    this.#isTooLong = !isLast && this.#held > this.#client.host.maxHeldBytes
    if (!isLast && !this.#isTooLong) return
    const held = Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#held = 0
    if (this.#isTooLong) this.#target.onReply(tag, held, 0, held.length, false, held[0]!)
    else this.#give(tag, held)
  }

  #give(tag: number, reply: Buffer): void {
    if (reply[0] === bulk && reply[1] !== 0x2d && this.#isOurs(nameAt(reply, 0).name)) {
      const request = this.#draws++ < maxDraws ? drawAgain : scanAll
      this.#lane().send(request, 0, request.length, this, tag, 0, this.#client.host.turn.nowMs)
      return
    }
    const names = namesAt(reply)
    let answer = reply
    if (this.#draws > maxDraws) answer = this.#firstOf(reply, names)
    else if (names >= 0) answer = this.#without(reply, names)
    this.#target.onReply(tag, answer, 0, answer.length, true, answer[0]!)
  }

  /** RANDOMKEY asks a cluster node about that node's keys. */
  #lane(): SharedLane {
    const { host, lanes, session } = this.#client
    if (host.cluster === undefined) return lanes.forCommands()
    const { homeSlots, nodeOf } = host.cluster.topology
    const slot = homeSlots[Math.floor(host.runtime.random() * homeSlots.length)]!
    return nodeOf.call(host.cluster.topology, slot).lane(session.snapshot())
  }

  #firstOf(reply: Buffer, names: number): Buffer {
    const [first] = names < 0 ? [] : this.#visible(reply, names)
    return first ?? Buffer.from(this.#client.session.version === 3 ? '_\r\n' : '$-1\r\n')
  }

  #without(reply: Buffer, names: number): Buffer {
    const visible = this.#visible(reply, names)
    return Buffer.concat([reply.subarray(0, names), Buffer.from(`*${visible.length}\r\n`), ...visible])
  }

  /** The names in an array that are not ours, each as a bulk string. */
  #visible(reply: Buffer, start: number): Buffer[] {
    const visible: Buffer[] = []
    for (let at = reply.indexOf(0x0a, start) + 1; at < reply.length; ) {
      const { name, end } = nameAt(reply, at)
      if (!this.#isOurs(name)) visible.push(reply.subarray(at, end))
      at = end
    }
    return visible
  }

  onLost(tag: number, error: UpstreamLostError, wasSent: boolean): void {
    this.#target.onLost(tag, error, wasSent)
  }

  isStalled(tag: number): boolean {
    return this.#target.isStalled?.(tag) ?? false
  }

  whenUnstalled(callback: () => void, tag: number): void {
    this.#target.whenUnstalled?.(callback, tag)
  }

  isBehind(tag: number): boolean {
    return this.#target.isBehind?.(tag) ?? false
  }

  whenCaughtUp(callback: () => void, tag: number): void {
    this.#target.whenCaughtUp?.(callback, tag)
  }
}

/** Where the array of names begins: for SCAN after the cursor; -1 if there is none. */
function namesAt(reply: Buffer): number {
  const cursor = /^\*2\r\n\$\d+\r\n\d+\r\n(?=\*)/.exec(reply.toString('latin1', 0, Math.min(reply.length, 96)))
  if (cursor !== null) return cursor[0].length
  return reply[0] === list && reply[1] !== 0x2d ? 0 : -1
}

/** The bulk string at an offset, and where it ends. */
function nameAt(reply: Buffer, at: number): { name: Buffer; end: number } {
  const lineEnd = reply.indexOf(0x0d, at)
  const start = lineEnd + 2
  const length = Number(reply.toString('latin1', at + 1, lineEnd))
  return { name: reply.subarray(start, start + length), end: start + length + 2 }
}
