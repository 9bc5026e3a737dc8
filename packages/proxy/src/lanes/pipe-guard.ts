import { BufferArgs } from '@firebreak/core/commands'
import { encodeCommand, RequestError, RequestParser } from '@firebreak/core/resp'
import { Input } from '../requests/input.ts'
import { RequestRest } from '../requests/request-rest.ts'
import type { Outlet } from '../transport/outlet.ts'

/** What a guard needs to know about its client. */
export interface GuardedClient {
  readonly outlet: Outlet
  readonly maxRequestBytes: number
  /** True if the proxy handles passwords: none of the client's are sent to Redis. */
  readonly hidesPasswords: boolean
  /** RESET was sent, and nothing more follows on this connection. */
  onReset(): void
}

const quit = encodeCommand(['QUIT'])
const quitReply = Buffer.from('+OK\r\n')
/** Sent in place of a request with a password: the server refuses it, in its turn and only if it answers at all. */
const refused = encodeCommand(['AUTH'])
/** No name that we look for is this long. */
const maxNameBytes = 64

/**
 * Reads the requests of a pipe as they pass, when the client must not authenticate to Redis itself.
 *
 * RESET would make the client an unauthenticated connection to Redis, possibly with more rights than the proxy grants.
 * So we send a QUIT after RESET: once the server has closed the connection, everything has been answered, and the
 * client belongs to the proxy again, in its initial state. Whatever it sends after RESET is held until then; of other
 * requests, only the name is held.
 */
export class PipeGuard {
  readonly #client: GuardedClient
  readonly #parser: RequestParser
  readonly #args: BufferArgs
  readonly #input = new Input()
  /** The rest of a request whose name is known, and whether to forward it. */
  #rest: RequestRest | undefined
  #isRestDropped = false
  #isResetting = false
  /** The server will close the connection: what follows is not a request. */
  #isBroken = false
  /** The last bytes received since RESET: they may be the answer to QUIT. */
  #tail: Buffer = Buffer.alloc(0)

  constructor(client: GuardedClient) {
    this.#client = client
    this.#parser = new RequestParser({ maxBulkBytes: client.maxRequestBytes })
    this.#args = new BufferArgs(this.#parser)
  }

  /** Forwards what the client has sent, as far as allowed. */
  forward(bytes: Uint8Array, start: number, end: number): void {
    const input = this.#input
    if (input.isEmpty) {
      const taken = this.#take(bytes, start, end)
      if (taken < end) input.add(bytes, taken, end)
    } else {
      input.add(bytes, start, end)
      input.consume(this.#take(input.bytes, input.start, input.end))
    }
  }

  /** True from RESET on. */
  get isResetting(): boolean {
    return this.#isResetting
  }

  /** True if everything has been answered, provided the connection is closed now. */
  get isAnswered(): boolean {
    return this.#isResetting && this.#tail.equals(quitReply)
  }

  /** Passes on what the server sends after RESET, except the answer to QUIT. */
  passOn(bytes: Uint8Array, start: number, end: number, outlet: Outlet): void {
    const all = Buffer.concat([this.#tail, bytes.subarray(start, end)])
    const cut = Math.max(0, all.length - quitReply.length)
    outlet.put(all, 0, cut)
    this.#tail = all.subarray(cut)
  }

  /** What was held after RESET. */
  get held(): Buffer {
    const { isEmpty, bytes, start, end } = this.#input
    return isEmpty ? Buffer.alloc(0) : bytes.subarray(start, end)
  }

  #take(bytes: Uint8Array, start: number, end: number): number {
    let at = start
    while (at < end && !this.#isResetting && !this.#isBroken) {
      const next = this.#rest === undefined ? this.#request(bytes, at, end) : this.#goOn(this.#rest, bytes, at, end)
      if (next === at) break
      at = next
    }
    return this.#isBroken ? end : at
  }

  #goOn(rest: RequestRest, bytes: Uint8Array, start: number, end: number): number {
    const next = rest.take(bytes, start, end)
    if (!this.#isRestDropped) this.#client.outlet.put(bytes, start, next)
    if (rest.isDone) this.#rest = undefined
    return next
  }

  /** Takes one request, or the available part of an incomplete one; returns `start` if its name has not arrived. */
  #request(bytes: Uint8Array, start: number, end: number): number {
    const parser = this.#parser
    const { outlet } = this.#client
    let next: number
    try {
      next = parser.parse(bytes, start, end)
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      this.#isBroken = true
      outlet.put(bytes, start, end)
      return end
    }
    const isWhole = next > 0
    const isNamed = parser.length > 0 || parser.missingBytes > maxNameBytes
    if (!isWhole && !isNamed) return start
    const isDropped = this.#showsPassword(isWhole ? parser.length : parser.expectedLength)
    if (isDropped) outlet.put(refused, 0, refused.length)
    else outlet.put(bytes, start, isWhole ? next : end)
    if (isWhole) {
      if (parser.length === 1 && this.#args.isWord(0, 'RESET')) this.#reset()
      return next
    }
    const isInArgument = parser.missingBytes > 0
    this.#rest = new RequestRest(parser.missingBytes, parser.expectedLength - parser.length - (isInArgument ? 1 : 0))
    if (!isInArgument) this.#rest.take(bytes, parser.readEnd, end)
    this.#isRestDropped = isDropped
    parser.reset()
    return end
  }

  #showsPassword(words: number): boolean {
    if (!this.#client.hidesPasswords || this.#parser.length === 0) return false
    return this.#args.isWord(0, 'AUTH') || (words > 2 && this.#args.isWord(0, 'HELLO'))
  }

  #reset(): void {
    this.#isResetting = true
    this.#client.outlet.put(quit, 0, quit.length)
    this.#client.onReset()
  }
}
