import type { Socket } from 'node:net'
import { ErrorReply, encodeCommand, ReplyDecoder, type RespValue } from '@firebreak/core'
import { WatchError } from '../errors.ts'
import { authCommand, openSocket, type ServerAddress } from './server-address.ts'

interface Waiting {
  resolve(value: RespValue): void
  reject(error: Error): void
}

/** A plain connection for the few questions a source asks a server; it does not reconnect. */
export class CommandLink {
  readonly #socket: Socket
  readonly #decoder = new ReplyDecoder({ bulk: 'text' })
  readonly #waiting: Waiting[] = []
  #failure: Error | undefined

  constructor(address: ServerAddress) {
    this.#socket = openSocket(address)
    this.#socket.on('data', (chunk) => this.#read(chunk))
    this.#socket.on('error', (error) => this.#fail(error))
    this.#socket.on('close', () =>
      this.#fail(new WatchError('FB_WATCH_REFUSED', `${address.host}:${address.port} closed the connection`)),
    )
    const auth = authCommand(address)
    if (auth !== undefined) this.send(...auth).catch((error: Error) => this.#fail(error))
  }

  get isBroken(): boolean {
    return this.#failure !== undefined
  }

  send(...args: string[]): Promise<RespValue> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) {
        reject(this.#failure)
        return
      }
      this.#waiting.push({ resolve, reject })
      this.#socket.write(encodeCommand(args))
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #read(chunk: Uint8Array): void {
    try {
      this.#decoder.feed(chunk)
      for (let value = this.#decoder.next(); value !== undefined; value = this.#decoder.next()) {
        const waiting = this.#waiting.shift()
        if (value instanceof ErrorReply) waiting?.reject(new WatchError('FB_WATCH_REFUSED', value.text))
        else waiting?.resolve(value)
      }
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  #fail(error: Error): void {
    this.#failure ??= error
    this.#socket.destroy()
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure)
  }
}

/** The fields of an INFO reply. */
export function parseInfo(text: string): Map<string, string> {
  const fields = new Map<string, string>()
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':')
    if (colon > 0 && !line.startsWith('#')) fields.set(line.slice(0, colon), line.slice(colon + 1))
  }
  return fields
}
