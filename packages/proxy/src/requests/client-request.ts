import { BufferArgs } from '@firebreak/core/commands'
import { encodeCommand, RequestParser, refuseHttp } from '@firebreak/core/resp'
import { type ProxyCommand, proxyCommandOf, unknownCommand } from '../commands/proxy-command.ts'

const asterisk = 0x2a
const none = new Uint8Array(0)

/**
 * A client's current request: its command, its arguments, and its bytes. One object per client, reused for each
 * request; copy anything that is needed later.
 */
export class ClientRequest {
  readonly parser: RequestParser
  readonly args: BufferArgs
  command: ProxyCommand = unknownCommand
  /** What is forwarded: `bytes` from `start` to `end`, an array of bulk strings whatever the client typed. */
  bytes: Uint8Array = none
  start = 0
  end = 0

  constructor(maxBulkBytes: number) {
    this.parser = new RequestParser({ maxBulkBytes })
    this.args = new BufferArgs(this.parser)
  }

  /** Takes what the parser has just read, from `start` to `end`; throws if it is a line of HTTP. */
  take(bytes: Uint8Array, start: number, end: number): void {
    this.command = proxyCommandOf(this.args)
    const isArray = bytes[start] === asterisk
    if (!isArray || this.command === unknownCommand) refuseHttp(this.parser, !isArray)
    if (isArray) {
      this.bytes = bytes
      this.start = start
      this.end = end
    } else this.rewrite(encodeCommand(this.list()))
  }

  /** Forwards other bytes instead. */
  rewrite(bytes: Uint8Array): void {
    this.bytes = bytes
    this.start = 0
    this.end = bytes.length
  }

  /** A copy of its bytes. */
  copy(): Buffer {
    return Buffer.from(this.bytes.subarray(this.start, this.end))
  }

  /** A view of one argument. */
  argument(index: number): Uint8Array {
    return this.parser.bytes.subarray(this.parser.startOf(index), this.parser.endOf(index))
  }

  /** Views of all arguments. */
  list(): Uint8Array[] {
    return Array.from({ length: this.parser.length }, (_, index) => this.argument(index))
  }
}
