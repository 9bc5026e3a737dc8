import type { Duplex } from 'node:stream'
import type { Timers } from '@firebreak/core'
import type { WebSocket } from 'ws'
import { type UnfinishedFrameBounds, unfinishedFrameDefaults } from '../hub-options.ts'

/** A smaller frame arrives in one piece: it is neither timed nor counted. */
const largeBytes = 64 * 1024

interface Unfinished {
  bytes: number
  /** Ends the connection once its frame has taken too long. */
  timer: { cancel(): void } | undefined
  readonly end: () => void
}

/**
 * Unfinished frames of sensors that have said hello. A WebSocket buffers a frame until its last byte arrives, without a
 * timeout: connections that each begin a large frame and fall silent would hold memory forever. So a large frame must
 * arrive within some seconds, and all of them together are bounded: beyond that, the connection holding the most is
 * ended.
 */
export class UnfinishedFrames {
  readonly #timers: Timers
  readonly #bounds: Required<UnfinishedFrameBounds>
  readonly #large = new Set<Unfinished>()
  #heldBytes = 0
  /** Number of connections ended. */
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
    // Before the WebSocket reads it: frames that this piece completes are subtracted again.
    stream.prependListener('data', (chunk: Buffer) => this.#add(own, chunk.length))
    connection.on('message', () => this.#clear(own))
    // There may be pings between the pieces of a frame; they neither end it nor belong to it.
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

/** Header and mask of a client's control frame. */
const pingHeadBytes = 6
