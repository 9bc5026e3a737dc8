import { connect, type NetConnectOpts, type Socket } from 'node:net'
import { type CommandArgument, encodeCommand, ReplyScanner } from '@firebreak/core/resp'

/** A client that sees replies as bytes, one string (latin1) each, as they came. */
export class RawClient {
  readonly socket: Socket
  readonly closed: Promise<void>
  isClosed = false
  readonly #replies: string[] = []
  readonly #waiting: ((reply: string) => void)[] = []
  readonly #scanner = new ReplyScanner({ maxBulkBytes: 2 ** 40 })
  #pieces: Buffer[] = []

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (chunk) => this.#read(chunk))
    socket.on('error', () => {})
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.isClosed = true
        for (const waiting of this.#waiting.splice(0)) waiting('CLOSED')
        resolve()
      })
    })
  }

  static connect(at: number | NetConnectOpts): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const place = typeof at === 'number' ? { host: '127.0.0.1', port: at } : at
      const socket = connect(place, () => resolve(new RawClient(socket)))
      socket.setNoDelay(true)
      socket.once('error', reject)
    })
  }

  /** Sends bytes as they are. */
  write(bytes: string | Uint8Array): void {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  }

  send(...args: CommandArgument[]): void {
    this.write(encodeCommand(args))
  }

  /** The next reply, `CLOSED` when the connection ends before it. */
  next(): Promise<string> {
    const reply = this.#replies.shift()
    if (reply !== undefined) return Promise.resolve(reply)
    if (this.isClosed) return Promise.resolve('CLOSED')
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  async ask(...args: CommandArgument[]): Promise<string> {
    this.send(...args)
    return this.next()
  }

  /** A line, as typed. */
  async type(line: string): Promise<string> {
    this.write(`${line}\r\n`)
    return this.next()
  }

  close(): Promise<void> {
    this.socket.destroy()
    return this.closed
  }

  #read(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      const end = this.#scanner.scan(chunk, at, chunk.length)
      this.#pieces.push(chunk.subarray(at, end))
      if (this.#scanner.isDone) {
        const reply = Buffer.concat(this.#pieces).toString('latin1')
        this.#pieces = []
        const waiting = this.#waiting.shift()
        if (waiting === undefined) this.#replies.push(reply)
        else waiting(reply)
      }
      at = end
    }
  }
}
