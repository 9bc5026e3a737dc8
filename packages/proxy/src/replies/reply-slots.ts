/** Where a client's replies go when it is their turn. */
export interface ReplySink {
  put(bytes: Uint8Array, start: number, end: number): void
}

interface WaitingReply {
  readonly pieces: Uint8Array[]
  isWhole: boolean
  /** Called when it is its turn. */
  onTurn?: () => void
}

/**
 * Puts a client's replies in the order of its requests.
 *
 * Each request takes a slot. A piece of the reply whose turn it is goes straight through; a reply that arrives before
 * its turn (from another node, from memory) is copied and waits. Numbers restart whenever nothing is owed.
 */
export class ReplySlots {
  readonly #sink: ReplySink
  #head = 0
  #tail = 0
  #fence = 0
  #waiting: Map<number, WaitingReply> | undefined
  /** Bytes of replies waiting for their turn. */
  waitingBytes = 0
  /** True when part of the current reply has been sent. */
  hasBegun = false

  constructor(sink: ReplySink) {
    this.#sink = sink
  }

  get owed(): number {
    return this.#tail - this.#head
  }

  /** The slot whose turn it is. */
  get head(): number {
    return this.#head
  }

  /** The slot that `take` will return. */
  get next(): number {
    return this.#tail
  }

  /** True until all slots taken before the fence have been answered. */
  get isBehindFence(): boolean {
    return this.#head < this.#fence
  }

  /** Puts the fence after the slots taken so far, plus `more`. */
  setFence(more = 0): void {
    this.#fence = this.#tail + more
  }

  /** Takes the next slot. */
  take(): number {
    return this.#tail++
  }

  reply(slot: number, bytes: Uint8Array, start: number, end: number, isLast: boolean): void {
    if (slot !== this.#head) {
      this.#keep(slot, bytes, start, end, isLast)
      return
    }
    this.#sink.put(bytes, start, end)
    if (!isLast) {
      this.hasBegun = true
      return
    }
    this.hasBegun = false
    this.#head++
    if (this.#waiting !== undefined) this.#passOn()
    if (this.#head === this.#tail) this.#head = this.#tail = this.#fence = 0
  }

  /** Discards the waiting pieces of a reply: it was cut off, and something else is answered. */
  drop(slot: number): void {
    for (const { length } of this.#waiting?.get(slot)?.pieces ?? []) this.waitingBytes -= length
    this.#waiting?.delete(slot)
  }

  /** Calls back when it is a slot's turn while its reply is incomplete; at once if it already is or was. */
  whenTurn(slot: number, callback: () => void): void {
    if (slot <= this.#head || slot >= this.#tail) callback()
    else this.#waitingAt(slot).onTurn = callback
  }

  /** Discards what is owed. */
  clear(): void {
    this.#head = this.#tail = this.#fence = 0
    this.#waiting = undefined
    this.waitingBytes = 0
    this.hasBegun = false
  }

  #keep(slot: number, bytes: Uint8Array, start: number, end: number, isLast: boolean): void {
    const reply = this.#waitingAt(slot)
    reply.pieces.push(Buffer.from(bytes.subarray(start, end)))
    reply.isWhole = isLast
    this.waitingBytes += end - start
  }

  #waitingAt(slot: number): WaitingReply {
    this.#waiting ??= new Map()
    let reply = this.#waiting.get(slot)
    if (reply === undefined) {
      reply = { pieces: [], isWhole: false }
      this.#waiting.set(slot, reply)
    }
    return reply
  }

  #passOn(): void {
    const waiting = this.#waiting!
    let onTurn: (() => void) | undefined
    for (;;) {
      const reply = waiting.get(this.#head)
      if (reply === undefined) break
      for (const piece of reply.pieces) {
        this.#sink.put(piece, 0, piece.length)
        this.waitingBytes -= piece.length
      }
      waiting.delete(this.#head)
      if (!reply.isWhole) {
        this.hasBegun = reply.pieces.length > 0
        onTurn = reply.onTurn
        break
      }
      this.#head++
    }
    if (waiting.size === 0) this.#waiting = undefined
    onTurn?.()
  }
}
