import { RequestParser } from '@firebreak/core/resp'
import { WatchError } from '../errors.ts'

/** A replica's place in the stream: the master's replication id and the offset of the last byte received. */
export interface ReplicaPosition {
  readonly id: string
  readonly offset: number
}

/** What a feed reports. */
export interface ReplicaFeedListener {
  /** The master answered PSYNC with this error. */
  onRefused(line: string): void
  onFullResync(position: ReplicaPosition): void
  /** The stream continues where it was; the master may have a new id. */
  onContinue(id: string | undefined): void
  /** The RDB has been read: commands follow. */
  onOnline(): void
  onCommand(args: readonly Uint8Array[]): void
}

type Phase =
  | { readonly kind: 'handshake' }
  | { readonly kind: 'rdb-header' }
  | { readonly kind: 'rdb-length'; left: number }
  | { readonly kind: 'rdb-mark'; readonly mark: Uint8Array }
  | { readonly kind: 'commands' }

const lineFeed = 10
const carriageReturn = 13
const markLength = 40

/**
 * Reads a master's answer to PSYNC: a line that says how the stream continues, an RDB that is skipped unread, then
 * commands.
 *
 * The RDB comes in one of two forms: `$length` and that many bytes, or `$EOF:` with a marker of 40 random bytes that is
 * repeated at the end. Line feeds before it are the master's keep-alive. Offsets count every byte of the command
 * stream, so `offset` advances by exactly what the parser consumed.
 */
export class ReplicaFeed {
  offset: number
  readonly #listener: ReplicaFeedListener
  readonly #parser = new RequestParser()
  #phase: Phase = { kind: 'handshake' }
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #neededBytes = 0

  constructor(offset: number, listener: ReplicaFeedListener) {
    this.offset = offset
    this.#listener = listener
  }

  feed(chunk: Uint8Array): void {
    this.#waiting.push(chunk)
    this.#waitingBytes += chunk.length
    // A large value is joined once all of it has arrived: joining chunk by chunk would copy it over and over.
    if (this.#waitingBytes < this.#neededBytes) return
    let bytes: Uint8Array = this.#waiting.length === 1 ? chunk : Buffer.concat(this.#waiting)
    for (;;) {
      const used = this.#step(bytes)
      if (used === 0) break
      bytes = bytes.subarray(used)
    }
    this.#waiting = bytes.length === 0 ? [] : [bytes]
    this.#waitingBytes = bytes.length
    this.#neededBytes = this.#phase.kind === 'commands' ? bytes.length + this.#parser.missingBytes : 0
  }

  /** Returns the bytes consumed, 0 if more are needed. */
  #step(bytes: Uint8Array): number {
    if (bytes.length === 0) return 0
    switch (this.#phase.kind) {
      case 'handshake':
      case 'rdb-header':
        return this.#line(bytes)
      case 'rdb-length': {
        const used = Math.min(this.#phase.left, bytes.length)
        this.#phase.left -= used
        if (this.#phase.left === 0) this.#online()
        return used
      }
      case 'rdb-mark':
        return this.#untilMark(bytes, this.#phase.mark)
      case 'commands':
        return this.#command(bytes)
    }
  }

  #line(bytes: Uint8Array): number {
    if (bytes[0] === lineFeed) return 1
    const end = bytes.indexOf(lineFeed)
    if (end < 0) {
      if (bytes.length > 65_536) throw new WatchError('FB_WATCH_PROTOCOL', 'the master sent a line that never ends')
      return 0
    }
    const textEnd = bytes[end - 1] === carriageReturn ? end - 1 : end
    const line = new TextDecoder().decode(bytes.subarray(0, textEnd))
    if (this.#phase.kind === 'rdb-header') this.#rdbHeader(line, bytes.subarray(0, textEnd))
    else this.#handshake(line)
    return end + 1
  }

  #handshake(line: string): void {
    const [word, id, offset] = line.split(' ')
    if (word === '+FULLRESYNC') {
      this.offset = Number(offset)
      this.#phase = { kind: 'rdb-header' }
      this.#listener.onFullResync({ id: id!, offset: this.offset })
    } else if (word === '+CONTINUE') {
      this.#listener.onContinue(id)
      this.#online()
    } else if (line.startsWith('-')) {
      this.#listener.onRefused(line.slice(1))
    } else {
      throw new WatchError('FB_WATCH_PROTOCOL', `the master answered PSYNC with "${line.slice(0, 80)}"`)
    }
  }

  #rdbHeader(line: string, raw: Uint8Array): void {
    if (line.startsWith('$EOF:')) {
      this.#phase = { kind: 'rdb-mark', mark: raw.slice(5, 5 + markLength) }
    } else if (/^\$\d+$/.test(line)) {
      const left = Number(line.slice(1))
      this.#phase = { kind: 'rdb-length', left }
      if (left === 0) this.#online()
    } else {
      throw new WatchError(
        'FB_WATCH_PROTOCOL',
        `the master answered "${line.slice(0, 80)}" instead of the start of its RDB`,
      )
    }
  }

  #untilMark(bytes: Uint8Array, mark: Uint8Array): number {
    const at = indexOfBytes(bytes, mark)
    if (at >= 0) {
      this.#online()
      return at + markLength
    }
    // The marker may have begun: keep one byte less than its length.
    return Math.max(0, bytes.length - markLength + 1)
  }

  #online(): void {
    this.#phase = { kind: 'commands' }
    this.#listener.onOnline()
  }

  #command(bytes: Uint8Array): number {
    // A line feed between commands is a keep-alive and counts as a byte of the stream.
    if (bytes[0] === lineFeed) {
      this.offset++
      return 1
    }
    const used = this.#parser.parse(bytes, 0, bytes.length)
    if (used === 0) return 0
    const args: Uint8Array[] = []
    for (let index = 0; index < this.#parser.length; index++) {
      args.push(this.#parser.bytes.subarray(this.#parser.startOf(index), this.#parser.endOf(index)))
    }
    this.offset += used
    if (args.length > 0) this.#listener.onCommand(args)
    return used
  }
}

function indexOfBytes(bytes: Uint8Array, wanted: Uint8Array): number {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).indexOf(wanted)
}
