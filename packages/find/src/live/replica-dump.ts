import { encodeCommand } from '@firebreak/core'
import type { RedisConnection } from '../connect/connection.ts'
import { FindError } from '../errors.ts'

/**
 * The dump that a server sends to a new replica, as it comes, without a file on either side (with diskless replication)
 * or on ours. The connection is of no other use afterwards.
 *
 * The answer to PSYNC is a line `+FULLRESYNC …`, then `$LENGTH` or `$EOF:MARK` and the dump; while the server forks it
 * sends empty lines. The dump ends by its own end mark, so neither length nor mark is needed; `rdb-only` (7.0) tells
 * the server not to keep a backlog of commands for us.
 */
export async function* replicaDump(connection: RedisConnection): AsyncGenerator<Buffer> {
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
      queue.push(chunk)
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
    for (;;) {
      const chunk = queue.shift()
      if (chunk === undefined) {
        if (failure !== undefined) throw failure
        connection.resume()
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        continue
      }
      if (head === undefined) {
        yield chunk
        continue
      }
      head = Buffer.concat([head, chunk])
      const start = dumpStart(head, connection.address)
      if (start === undefined) continue
      const rest: Buffer = head.subarray(start)
      head = undefined
      if (rest.length > 0) yield rest
    }
  } finally {
    connection.close()
  }
}

/** Where the dump begins in what has come so far; undefined while that is not known. */
function dumpStart(head: Buffer, address: string): number | undefined {
  let at = 0
  for (;;) {
    const end = head.indexOf('\n', at)
    if (end < 0) {
      if (head.length - at > 4096) throw new FindError('FB_FIND_LIVE', `${address} answers PSYNC with no dump`)
      return undefined
    }
    const line = head.toString('latin1', at, end).trim()
    at = end + 1
    if (line.startsWith('$')) return at
    if (line.startsWith('-')) {
      throw new FindError(
        'FB_FIND_LIVE',
        `${address} does not send its data: ${line.slice(1)}; the user needs +psync +replconf, and some hosted Redis refuse it`,
      )
    }
  }
}
