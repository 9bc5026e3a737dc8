import type { Duplex } from 'node:stream'
import type { Timers } from '@firebreak/core'
import type { WebSocket } from 'ws'
import { type UnfinishedFrameBounds, unfinishedFrameDefaults } from '../hub-options.ts'

/** Less than this is in one piece of a stream: it is neither timed nor added up. */
const largeBytes = 64 * 1024

interface Unfinished {
  bytes: number
  /** Ends the connection once its frame has taken too long. */
  timer: { cancel(): void } | undefined
  readonly end: () => void
}

/**
 * Frames that have begun and not ended, of sensors that have said hello. A WebSocket holds a frame until its last byte has come,
 * and knows no time-out: connections that each begin a large frame and fall silent would hold memory for ever. A large
 * frame has some seconds, and all of them together have a bound: beyond it the connection that holds most is ended.
 */
export class UnfinishedFrames {
  readonly #timers: Timers
  readonly #bounds: Required<UnfinishedFrameBounds>
  readonly #large = new Set<Unfinished>()
  #heldBytes = 0
  /** Connections that were ended. */
  endedCount = 0

  constructor(timers: Timers, bounds?: UnfinishedFrameBounds) {
    this.#timers = timers
    this.#bounds = { ...unfinishedFrameDefaults, ...bounds }
  }

  watch(stream: Duplex, connection: WebSocket): void {
    const end = () => {
      this.endedCount++
      connection.close(1008, 'a frame took too long')
      // Not a goodbye that waits for theirs, which would go on reading.
      stream.destroy()
    }
    const own: Unfinished = { bytes: 0, timer: undefined, end }
    // Before the WebSocket reads it: what this piece ends is taken away again.
    stream.prependListener('data', (chunk: Buffer) => this.#add(own, chunk.length))
    connection.on('message', () => this.#clear(own))
    // Between the pieces of a frame there may be pings, which do not end it and are not part of it.
    connection.on('ping', (data: Buffer) => this.#add(own, -Math.min(own.bytes, data.length + pingHeadBytes)))
    connection.on('pong', (data: Buffer) => this.#add(own, -Math.min(own.bytes, data.length + pingHeadBytes)))
    connection.on('close', () => this.#clear(own))
  }

  #add(own: Unfinished, bytes: number): void {
    own.bytes += bytes
    if (this.#large.has(own)) this.#heldBytes += bytes
    else if (own.bytes > largeBytes) {
      this.#large.add(own)
      this.#heldBytes += own.bytes
      own.timer = this.#timers.setTimeout(() => this.#end(own), this.#bounds.frameTimeoutMs)
    }
    while (this.#heldBytes > this.#bounds.maxUnfinishedBytes) this.#end(this.#largest())
  }

  #clear(own: Unfinished): void {
    if (this.#large.delete(own)) {
      this.#heldBytes -= own.bytes
      own.timer?.cancel()
    }
    own.bytes = 0
  }

  #end(own: Unfinished): void {
    this.#clear(own)
    own.end()
  }

  #largest(): Unfinished {
    return [...this.#large].reduce((largest, one) => (one.bytes > largest.bytes ? one : largest))
  }
}

/** Head and mask of a control frame of a client. */
const pingHeadBytes = 6
