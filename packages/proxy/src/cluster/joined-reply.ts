import { ReplyScanner } from '@firebreak/core/resp'
import type { UpstreamLostError } from '../errors.ts'
import { lostReply } from '../replies/reply-text.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'

/**
 * How the replies of several nodes are joined: `sum` adds integers, `sums` adds those at each place of an array;
 * `items` concatenates all arrays; `all` is an error if any reply is, otherwise the first; `any` is a random reply that
 * is not null; `least` takes the smallest integer at each place; `places` puts each item of each array where its key
 * was.
 */
export type JoinKind = 'sum' | 'sums' | 'items' | 'all' | 'any' | 'least' | 'places'

/** Receives the joined reply. */
export interface JoinedSink {
  answer(reply: Buffer): void
  onLost(error: UpstreamLostError, wasSent: boolean): void
  /** More arrived than may be held. Everything so far is dropped, as is everything still to come. */
  onOverflow?(): void
}

/** What is gathered. */
export interface JoinedReplyOptions {
  readonly kind: JoinKind
  readonly parts: number
  /** True if a part that was carried out has changed something even if another part was not carried out. */
  readonly isWrite: boolean
  /** For `any`: randomness. */
  readonly random?: () => number
  /** For `places`: the positions of each part's items in the whole. */
  readonly places?: readonly (readonly number[])[]
  /** Accounts for what is held; `add` returns false if it is too much. */
  readonly held?: { add(bytes: number): boolean; release(): void } | undefined
}

/** Collects the replies to the parts of one request; part i is requested with tag i. */
export class JoinedReply implements ReplyTarget {
  readonly #options: JoinedReplyOptions
  readonly #sink: JoinedSink
  #replies: Buffer[][]
  #missing: number
  #isOver = false
  #lost: { readonly error: UpstreamLostError; readonly wasSent: boolean } | undefined

  constructor(options: JoinedReplyOptions, sink: JoinedSink) {
    this.#options = options
    this.#sink = sink
    this.#replies = Array.from({ length: options.parts }, () => [])
    this.#missing = options.parts
  }

  onReply(part: number, bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.#isOver) return
    this.#replies[part]!.push(Buffer.from(bytes.subarray(start, end)))
    if (this.#options.held?.add(end - start) === false) this.#overflow()
    else if (isLast && --this.#missing === 0) this.#finish()
  }

  onLost(part: number, error: UpstreamLostError, wasSent: boolean): void {
    if (this.#isOver) return
    // A part that may have been carried out decides how the whole is reported.
    if (this.#lost === undefined || wasSent) this.#lost = { error, wasSent }
    this.#replies[part] = []
    if (--this.#missing === 0) this.#finish()
  }

  #overflow(): void {
    this.#isOver = true
    this.#replies = []
    this.#options.held!.release()
    this.#sink.onOverflow!()
  }

  #finish(): void {
    this.#tell()
    this.#options.held?.release()
  }

  #tell(): void {
    const replies = this.#replies.map((pieces) => Buffer.concat(pieces))
    const failure = replies.find(isError)
    const isPartlyDone = this.#options.isWrite && replies.some((reply) => reply.length > 0 && !isError(reply))
    if (this.#lost !== undefined) {
      const { error, wasSent } = this.#lost
      if (isPartlyDone) this.#sink.answer(partlyLost(error, wasSent))
      else this.#sink.onLost(error, wasSent)
    } else if (failure === undefined) this.#sink.answer(this.#join(replies))
    else this.#sink.answer(isPartlyDone ? partlyRefused(failure) : failure)
  }

  #join(replies: readonly Buffer[]): Buffer {
    switch (this.#options.kind) {
      case 'all':
        return replies[0]!
      case 'any': {
        const found = replies.filter((reply) => reply.length > nullBytes)
        return found[Math.floor((this.#options.random?.() ?? 0) * found.length)] ?? replies[0]!
      }
      case 'sum':
        return Buffer.from(`:${replies.reduce((sum, reply) => sum + integerOf(reply), 0)}\r\n`)
      case 'sums': {
        const [first, ...others] = replies.map(itemsOf)
        const sums = first!.map((item, index) => {
          if (item[0] !== colon) return item
          const sum = others.reduce((total, items) => total + integerOf(items[index]!), integerOf(item))
          return Buffer.from(`:${sum}\r\n`)
        })
        return arrayOf(sums)
      }
      case 'items':
        return arrayOf(replies.flatMap(itemsOf))
      case 'least': {
        const rows = replies.map((reply) => itemsOf(reply).map(integerOf))
        const least = rows[0]!.map((_, index) => Math.min(...rows.map((row) => row[index]!)))
        return Buffer.from(`*${least.length}\r\n${least.map((value) => `:${value}\r\n`).join('')}`)
      }
      case 'places': {
        const items: Buffer[] = []
        const { places = [] } = this.#options
        for (const [part, reply] of replies.entries()) {
          for (const [index, item] of itemsOf(reply).entries()) items[places[part]![index]!] = item
        }
        return arrayOf(items)
      }
    }
  }
}

/** The longest form of null, in RESP2; a key's reply is never shorter. */
const nullBytes = '$-1\r\n'.length

const colon = 0x3a

function arrayOf(items: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.from(`*${items.length}\r\n`), ...items])
}

function isError(reply: Buffer): boolean {
  return reply[0] === 0x2d
}

/** The error for a client when one part of its write was carried out and another lost its connection. */
function partlyLost(error: UpstreamLostError, wasSent: boolean): Buffer {
  const reason = lostReply(error, wasSent)
    .toString('latin1')
    .replace(/^-(ERR Firebreak: )?/, '')
  return Buffer.from(`-ERR Firebreak: a part of this command was carried out; of another: ${reason}`, 'latin1')
}

/** The error of one part, when another was carried out. */
function partlyRefused(failure: Buffer): Buffer {
  return Buffer.concat([
    failure.subarray(0, failure.length - 2),
    Buffer.from(' (Firebreak: another part of this command was carried out)\r\n'),
  ])
}

function integerOf(reply: Buffer): number {
  return Number(reply.toString('latin1', 1, reply.length - 2))
}

/** The items of an array reply, each as bytes. */
function itemsOf(reply: Buffer): Buffer[] {
  const scanner = new ReplyScanner()
  const items: Buffer[] = []
  for (let at = reply.indexOf(0x0a) + 1; at < reply.length; ) {
    const end = scanner.scan(reply, at, reply.length)
    items.push(reply.subarray(at, end))
    at = end
  }
  return items
}
