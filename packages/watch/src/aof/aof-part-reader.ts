import { type FileHandle, open } from 'node:fs/promises'
import { RequestParser } from '@firebreak/core/resp'
import { WatchError } from '../errors.ts'

const blockBytes = 256 * 1024
const hash = 0x23
const star = 0x2a
const lineFeed = 10

/** What happened to a file since the last read. */
export type ReadResult = 'more' | 'end' | 'truncated'

/** Reads the commands appended to one AOF file since the last read. */
export class AofPartReader {
  readonly path: string
  readonly #handle: FileHandle
  readonly #parser = new RequestParser()
  /** File offset of the first byte of `#rest`; everything before it has been emitted. */
  #offset: number
  #rest: Uint8Array = new Uint8Array(0)

  private constructor(path: string, handle: FileHandle, offset: number) {
    this.path = path
    this.#handle = handle
    this.#offset = offset
  }

  /** Opens a file at an offset where a command begins, or at its end if no offset is given. */
  static async open(path: string, offset?: number): Promise<AofPartReader> {
    const handle = await open(path, 'r')
    return new AofPartReader(path, handle, offset ?? (await handle.stat()).size)
  }

  get offset(): number {
    return this.#offset
  }

  /** Identifies the file itself, which a rewrite replaces under the same name. */
  async inode(): Promise<number> {
    return (await this.#handle.stat()).ino
  }

  /** Reads one block and emits the complete commands in it. */
  async read(onCommand: (args: readonly Uint8Array[]) => void): Promise<ReadResult> {
    const { size } = await this.#handle.stat()
    if (size < this.#offset) return 'truncated'
    // A server that crashed in the middle of a command truncates the partial command when it restarts.
    if (size < this.#offset + this.#rest.length) {
      this.#rest = new Uint8Array(0)
      this.#parser.reset()
    }
    // A large value is read in one piece: growing it block by block would copy it over and over.
    const available = size - this.#offset - this.#rest.length
    if (available === 0 || available < this.#parser.missingBytes) return 'end'
    const bytes = new Uint8Array(
      this.#rest.length + Math.min(available, Math.max(blockBytes, this.#parser.missingBytes)),
    )
    bytes.set(this.#rest)
    const start = this.#rest.length
    const { bytesRead } = await this.#handle.read(bytes, start, bytes.length - start, this.#offset + start)
    if (bytesRead < bytes.length - start) return 'end'
    const used = this.#commands(bytes, onCommand)
    this.#offset += used
    this.#rest = bytes.subarray(used)
    return 'more'
  }

  async close(): Promise<void> {
    await this.#handle.close()
  }

  #commands(bytes: Uint8Array, onCommand: (args: readonly Uint8Array[]) => void): number {
    let at = 0
    while (at < bytes.length) {
      if (bytes[at] === hash) {
        // An annotation such as `#TS:1700000000`, written if aof-timestamp-enabled is on.
        const end = bytes.indexOf(lineFeed, at)
        if (end < 0) break
        at = end + 1
        continue
      }
      if (bytes[at] !== star) {
        throw new WatchError(
          'FB_WATCH_AOF',
          `${this.path} at byte ${this.#offset + at}: expected the start of a command`,
        )
      }
      const end = this.#parser.parse(bytes, at, bytes.length)
      if (end === 0) break
      const args: Uint8Array[] = []
      for (let index = 0; index < this.#parser.length; index++) {
        args.push(this.#parser.bytes.subarray(this.#parser.startOf(index), this.#parser.endOf(index)))
      }
      at = end
      if (args.length > 0) onCommand(args)
    }
    return at
  }
}
