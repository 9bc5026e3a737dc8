import { encodeCommand, type RespClient } from '@firebreak/core/resp'
import { FindError } from '../errors.ts'

/**
 * The dump that a server sends to a new replica, as it arrives, without a file on either side (with diskless
 * replication) or on ours. The connection cannot be used for anything else afterwards.
 *
 * The answer to PSYNC is a line `+FULLRESYNC …`, then `$LENGTH` and that many bytes, or `$EOF:MARK`, the dump and the
 * mark; while the server forks it sends empty lines. `rdb-only` (7.0) tells it not to keep a backlog of commands for
 * us.
 */
export async function* replicaDump(connection: RespClient): AsyncGenerator<Buffer> {
  for (const capability of [
    ['capa', 'eof'],
    ['capa', 'psync2'],
    ['rdb-only', '1'],
  ]) {
    await connection.send(['REPLCONF', ...capability]).catch(() => {})
  }
  const queue: Buffer[] = []
  let failure: Error | undefined
  let wake = () => {}
  connection.takeOver(
    encodeCommand(['PSYNC', '?', '-1']),
    (chunk) => {
      queue.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length))
      if (queue.length > 64) connection.pause()
      wake()
    },
    (error) => {
      failure = error
      wake()
    },
  )
  try {
    let head: Buffer | undefined = Buffer.alloc(0)
    let end: DumpEnd | undefined
    for (;;) {
      const chunk = queue.shift()
      if (chunk === undefined) {
        // A dump that ends too early is reported by its reader, with the offset.
        if (failure !== undefined && end !== undefined) return
        if (failure !== undefined) throw failure
        connection.resume()
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        continue
      }
      let part: Buffer = chunk
      if (head !== undefined) {
        head = Buffer.concat([head, chunk])
        const found = dumpStart(head, connection.address)
        if (found === undefined) continue
        end = found.end
        part = head.subarray(found.at)
        head = undefined
      }
      const content = end!.take(part)
      if (content.length > 0) yield content
      if (end!.isReached) return
    }
  } finally {
    connection.close()
  }
}

/** Where the dump begins in what has arrived so far; undefined while unknown. */
function dumpStart(head: Buffer, address: string): { at: number; end: DumpEnd } | undefined {
  let at = 0
  for (;;) {
    const end = head.indexOf('\n', at)
    if (end < 0) {
      if (head.length - at > 4096) throw new FindError('FB_FIND_LIVE', `${address} did not answer PSYNC with a dump`)
      return undefined
    }
    const line = head.toString('latin1', at, end).trim()
    at = end + 1
    if (line.startsWith('$')) return { at, end: new DumpEnd(line.slice(1)) }
    if (line.startsWith('-')) {
      throw new FindError(
        'FB_FIND_LIVE',
        `${address} does not send its data: ${line.slice(1)}; the user needs +psync +replconf, and some hosted Redis refuse it`,
      )
    }
  }
}

/** Finds the end of a dump: after a number of bytes, or at a mark. */
class DumpEnd {
  isReached = false
  #left: number
  readonly #mark: Buffer | undefined
  /** The last bytes, which may be the start of the mark. */
  #tail: Buffer = Buffer.alloc(0)

  constructor(announced: string) {
    const isMark = announced.startsWith('EOF:')
    this.#mark = isMark ? Buffer.from(announced.slice(4), 'latin1') : undefined
    this.#left = isMark ? Number.POSITIVE_INFINITY : Number(announced)
  }

  /** The part of a chunk that definitely belongs to the dump. */
  take(chunk: Buffer): Buffer {
    if (this.#mark === undefined) {
      const content = chunk.subarray(0, this.#left)
      this.#left -= content.length
      this.isReached = this.#left === 0
      return content
    }
    const bytes = Buffer.concat([this.#tail, chunk])
    const kept = Math.max(0, bytes.length - this.#mark.length)
    this.#tail = bytes.subarray(kept)
    this.isReached = this.#tail.equals(this.#mark)
    return bytes.subarray(0, kept)
  }
}
