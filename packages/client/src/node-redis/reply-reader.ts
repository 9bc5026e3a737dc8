import { resp2Form } from '@firebreak/shield'
import type { NodeRedisConnection } from './node-redis-client.ts'

type TypeMapping = Readonly<Record<number, unknown>>

interface Decoder {
  write(bytes: Buffer): void
}

type DecoderClass = new (config: {
  onReply(reply: unknown): void
  onErrorReply(error: unknown): void
  onPush(push: unknown): void
  getTypeMapping(): TypeMapping
}) => Decoder

const noMapping: TypeMapping = {}

/**
 * Returns a cached reply as the connection itself would return it to a command, before the command's `transformReply`:
 * the bytes go through node-redis' own decoder, so that type mappings, the digits of doubles and the prototypes of maps
 * are the same as without us, whichever version is installed. Every call creates new objects, which callers may change.
 */
export class ReplyReader {
  readonly #Decoder: DecoderClass
  readonly #isResp2: boolean
  #ErrorReply: (new () => Error) | undefined

  constructor(connection: NodeRedisConnection) {
    this.#Decoder = connection._getQueue().decoder.constructor as DecoderClass
    // Key prefixes came with version 6, and with it RESP3 as the default.
    const byDefault = '_keyPrefix' in connection ? 3 : 2
    this.#isResp2 = (connection.options?.RESP ?? byDefault) === 2
  }

  /** True for an answer from the server itself, as opposed to a failure of the connection. */
  isErrorReply(error: unknown): boolean {
    this.#ErrorReply ??= this.#errorClass()
    return this.#ErrorReply !== undefined && error instanceof this.#ErrorReply
  }

  /** The class that the installed version uses for server errors: only its decoder knows it. */
  #errorClass(): (new () => Error) | undefined {
    let made: unknown
    const decoder = new this.#Decoder({
      onReply() {},
      onErrorReply(error) {
        made = error
      },
      onPush() {},
      getTypeMapping: () => noMapping,
    })
    decoder.write(Buffer.from('-ERR\r\n'))
    return made instanceof Error ? (made.constructor as new () => Error) : undefined
  }

  read(commandName: string, resp3: Uint8Array, typeMapping: TypeMapping = noMapping): unknown {
    const bytes = this.#isResp2 ? resp2Form(commandName, resp3) : resp3
    let value: unknown
    const decoder = new this.#Decoder({
      onReply(reply) {
        value = reply
      },
      onErrorReply() {},
      onPush() {},
      getTypeMapping: () => typeMapping,
    })
    decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
    return value
  }
}
