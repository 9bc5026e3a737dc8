import { connect, type Socket } from 'node:net'
import {
  type CommandArgument,
  encodeCommand,
  MapReply,
  ReplyDecoder,
  type RespValue,
  SetReply,
} from '@firebreak/core/resp'

/** A bare connection to a real server that speaks through core's own codec. */
export class Connection {
  readonly #socket: Socket
  readonly #decoder = new ReplyDecoder({ bulk: 'text' })
  readonly #waiting: ((value: RespValue) => void)[] = []

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk) => {
      this.#decoder.feed(chunk)
      for (let value = this.#decoder.next(); value !== undefined; value = this.#decoder.next()) {
        this.#waiting.shift()?.(value)
      }
    })
  }

  static async open(port: number): Promise<Connection> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    const connection = new Connection(socket)
    await connection.call('HELLO', '3')
    return connection
  }

  call(...args: CommandArgument[]): Promise<RespValue> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      this.#socket.write(encodeCommand(args))
    })
  }

  close(): void {
    this.#socket.destroy()
  }
}

/** A reply with maps as objects and sets as arrays. */
export function plain(value: RespValue): unknown {
  if (value instanceof MapReply) {
    const entries: [string, unknown][] = []
    for (let index = 0; index < value.items.length; index += 2) {
      entries.push([String(value.items[index]), plain(value.items[index + 1]!)])
    }
    return Object.fromEntries(entries)
  }
  if (value instanceof SetReply) return value.items.map(plain)
  return Array.isArray(value) ? value.map(plain) : value
}
