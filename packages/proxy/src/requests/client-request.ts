import { BufferArgs } from '@firebreak/core/commands'
import { encodeCommand, RequestParser } from '@firebreak/core/resp'
import { type ProxyCommand, proxyCommandOf, unknownCommand } from '../commands/proxy-command.ts'

const asterisk = 0x2a
const none = new Uint8Array(0)

/**
 * The request of a client that is at hand: what it asks for, its arguments, and its bytes. One object per client, used
 * again for each request; whoever needs anything of it later takes a copy.
 */
export class ClientRequest {
  readonly parser: RequestParser
  readonly args: BufferArgs
  command: ProxyCommand = unknownCommand
  /** What is sent on: `bytes` from `start` to `end`, an array of bulk strings whatever the client typed. */
  bytes: Uint8Array = none
  start = 0
  end = 0

  constructor(maxBulkBytes: number) {
    this.parser = new RequestParser({ maxBulkBytes })
    this.args = new BufferArgs(this.parser)
  }

  /** Takes what the parser has read last, from `start` to `end`. */
  take(bytes: Uint8Array, start: number, end: number): void {
    this.command = proxyCommandOf(this.args)
    if (bytes[start] === asterisk) {
      this.bytes = bytes
      this.start = start
      this.end = end
    } else this.rewrite(encodeCommand(this.list()))
  }

  /** Sends other bytes on in its place. */
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
