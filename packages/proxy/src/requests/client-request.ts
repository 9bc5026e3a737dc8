import { BufferArgs, encodeCommand, RequestParser } from '@firebreak/core'

const asterisk = 0x2a

/** The request of a client that is at hand: its arguments, where they stand in what the client sent. */
export class ClientRequest {
  readonly parser: RequestParser
  readonly args: BufferArgs

  constructor(maxBulkBytes: number) {
    this.parser = new RequestParser({ maxBulkBytes })
    this.args = new BufferArgs(this.parser)
  }

  /** A view of one argument. */
  argument(index: number): Uint8Array {
    return this.parser.bytes.subarray(this.parser.startOf(index), this.parser.endOf(index))
  }

  /** Views of all arguments. */
  list(): Uint8Array[] {
    return Array.from({ length: this.parser.length }, (_, index) => this.argument(index))
  }

  /** Its bytes as an array of bulk strings, whatever the client typed. */
  wholeBytes(bytes: Buffer, start: number, end: number): { bytes: Uint8Array; start: number; end: number } {
    if (bytes[start] === asterisk) return { bytes, start, end }
    const own = encodeCommand(this.list())
    return { bytes: own, start: 0, end: own.length }
  }
}
