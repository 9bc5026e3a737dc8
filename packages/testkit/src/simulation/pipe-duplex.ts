import { Duplex } from 'node:stream'
import type { PipeEnd } from './pipe-end.ts'

/** A pipe's end as a Node stream, for code that is handed sockets: `connect`, data, `end`, `error` and `close`. */
export class PipeDuplex extends Duplex {
  readonly #end: PipeEnd
  #afterDrain: (() => void) | undefined

  constructor(end: PipeEnd) {
    super({ allowHalfOpen: end.allowsHalfOpen })
    this.#end = end
    end.onConnect = () => this.emit('connect')
    end.onData = (bytes) => {
      if (!this.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))) end.pause()
    }
    end.onEnd = () => this.push(null)
    end.onDrain = () => {
      const next = this.#afterDrain
      this.#afterDrain = undefined
      next?.()
    }
    end.onClose = (error) => this.destroy(error)
  }

  get connecting(): boolean {
    return this.#end.isConnecting
  }

  /** As a socket's; a simulated one never keeps a process alive. */
  unref(): this {
    return this
  }

  ref(): this {
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  override _read(): void {
    this.#end.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    if (this.#end.write(chunk)) callback()
    else this.#afterDrain = callback
  }

  override _final(callback: (error?: Error | null) => void): void {
    this.#end.end()
    callback()
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#end.destroy()
    callback(error)
  }
}
