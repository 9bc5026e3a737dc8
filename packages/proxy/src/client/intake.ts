import { RequestError } from '@firebreak/core/resp'
import { Input } from '../requests/input.ts'
import { LargeRequest } from '../requests/large-request.ts'
import { type ClientFlow, holds } from './client-flow.ts'
import { dispatch } from './dispatch.ts'
import type { ProxyClient } from './proxy-client.ts'

/**
 * How much is read behind a waiting request, plus at most one read. Behind a command that may wait forever we keep
 * reading: only after everything has been read do we see that the client has gone, and then the command is given up.
 */
const readAheadBytes = 256 * 1024
/** The same for a client that has not authenticated. */
const strangerAheadBytes = 16 * 1024

/**
 * What a client has sent: takes one request after another off the wire and routes it, unless something holds requests
 * up. What cannot be taken yet waits here, and beyond a bound in the kernel.
 */
export class Intake {
  readonly #client: ProxyClient
  readonly #flow: ClientFlow
  readonly #input = new Input()
  readonly #large: LargeRequest

  constructor(client: ProxyClient, flow: ClientFlow) {
    this.#client = client
    this.#flow = flow
    this.#large = new LargeRequest(client)
  }

  /** True when nothing is waiting to be taken. */
  get isEmpty(): boolean {
    return this.#input.isEmpty
  }

  /** True while more input would only wait. */
  get isFull(): boolean {
    if (!this.#flow.isBlocked) return false
    const { own, host, backlog } = this.#client
    if (this.#input.length < (backlog.isStranger ? strangerAheadBytes : readAheadBytes)) return false
    return !own.mayBeBlocked || this.#input.length >= host.maxOutputBytes
  }

  clear(): void {
    this.#input.clear()
  }

  receive(bytes: Buffer, length: number): void {
    const { own, transport } = this.#client
    if (own.pinned?.isPipe === true && this.#input.isEmpty && !this.#flow.isBlocked) {
      own.pinned.forward(bytes, 0, length)
      if (own.pinned.mustWait) transport.pause()
      return
    }
    const start = this.#large.isOnItsWay ? this.#large.forward(bytes, length) : 0
    if (this.#large.mustWait) transport.pause()
    if (start === length) return
    if (this.#input.isEmpty && !this.#flow.isBlocked) {
      const taken = this.#take(bytes, start, length)
      if (taken < length && !this.#flow.isLeaving) this.#input.add(bytes, taken, length, this.#large.missingBytes)
    } else {
      this.#input.add(bytes, start, length, this.#large.missingBytes)
      this.takeInput()
    }
    if (this.isFull) transport.pause()
  }

  /**
   * Redis has accepted what was sent over the client's own connection: the rest of a large request, or more, may
   * follow.
   */
  onUpstreamDrain(): void {
    const { own, transport } = this.#client
    if ((this.#large.isOnItsWay || own.pinned?.isPipe === true) && !this.#flow.isBlocked) transport.resume()
  }

  /** Takes the waiting requests. */
  takeInput(): void {
    const input = this.#input
    const { own } = this.#client
    while (!input.isEmpty && !this.#flow.isBlocked && !this.#flow.isLeaving) {
      const { start } = input
      if (own.pinned?.isPipe === true) {
        own.pinned.forward(input.bytes, start, input.end)
        input.clear()
        return
      }
      const taken = this.#take(input.bytes, start, input.end)
      input.consume(taken)
      if (taken === start) break
    }
  }

  /** Takes the complete requests; returns the offset after the last one. */
  #take(bytes: Buffer, start: number, end: number): number {
    let at = start
    const client = this.#client
    const flow = this.#flow
    const { parser, request, own, backlog, slots } = client
    const { shield } = client.host
    backlog.renewWindow()
    if (backlog.isBehind) this.waitForReader()
    while (at < end && !flow.isBlocked) {
      let next: number
      try {
        next = parser.parse(bytes, at, end)
        if (next === 0) {
          if (client.standing.mustWait()) return at
          if (this.#large.begin(bytes, at, end)) return end
        } else if (parser.length > 0) request.take(bytes, at, next)
      } catch (error) {
        if (!(error instanceof RequestError)) throw error
        if (own.awaitsAnswers()) return at
        client.answerNow(Buffer.from(`-${error.reply}\r\n`, 'latin1'))
        client.endAfterReplies()
        return end
      }
      if (next === 0) break
      if (shield !== undefined) shield.canRepeat = false
      if (parser.length > 0 && !dispatch(client)) return at
      at = shield?.canRepeat === true ? shield.repeat(client, bytes, at, next, end) : next
      if (flow.isLeaving) return end
      if (own.pinned?.isPipe === true) {
        own.pinned.forward(bytes, at, end)
        return end
      }
      if (slots.owed > this.#maxOwed) {
        flow.block(holds.crowd)
        client.standing.seeCrowd()
      }
    }
    return at
  }

  /** Maximum number of requests in flight: over a dedicated connection the client delays nobody else. */
  get #maxOwed(): number {
    const { own, backlog, host } = this.#client
    return own.pinned === undefined ? backlog.window : host.maxInFlight
  }

  /** Input waits until the client has read its replies, unless it was only waiting for the end of the event. */
  waitForReader(): void {
    const { outlet, backlog } = this.#client
    outlet.flush()
    if (backlog.isBehind) this.#flow.block(holds.reader)
    else this.#flow.unblock(holds.reader)
  }

  /** True if too many requests were in flight and half of them have been answered. */
  get isCrowdGone(): boolean {
    return this.#flow.isBlockedBy(holds.crowd) && this.#client.slots.owed <= this.#maxOwed >> 1
  }

  /** Checks whether what held requests up has ended; false if something still holds them. */
  unblock(): boolean {
    const flow = this.#flow
    if (flow.isBlockedBy(holds.reader) && !this.#client.backlog.isBehind) flow.unblock(holds.reader)
    if (this.isCrowdGone) flow.unblock(holds.crowd)
    return !flow.isBlocked
  }
}
