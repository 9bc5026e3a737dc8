import type { CommandRow } from '@firebreak/core'
import { type HotKey, type ReadCommand, readCommand } from '@firebreak/shield'
import type { ClientConnection } from '../client/client-connection.ts'

/** The request at hand as a read that can be sent later. */
export function readOf(client: ClientConnection, row: CommandRow, keyIndex: number): ReadCommand {
  // Copies: a load may be sent after the client's chunk is gone.
  const list = client.request.list().map((argument) => Buffer.from(argument))
  const skipped = row.name.includes(' ') ? 2 : 1
  return readCommand(row.name, list.slice(skipped), keyIndex - skipped)
}

/** GET of a hot key. */
export function getOf(hot: HotKey): ReadCommand {
  return readCommand('GET', [hot.bytes], 0)
}
