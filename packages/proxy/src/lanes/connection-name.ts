import { encodeCommand } from '@firebreak/core/resp'
import { type ProxyCommand, proxyCommands } from '../commands/proxy-command.ts'
import type { PinnedLane } from './pinned-lane.ts'

/** Removes a connection's name. */
export const noName: Uint8Array = encodeCommand(['CLIENT', 'SETNAME', ''])

const setNameCommand: ProxyCommand = proxyCommands.find(({ name }) => name === 'CLIENT SETNAME')!

/** Gives a connection its client's name on the server, instead of that of its previous user. */
export function showName(pinned: PinnedLane, name: string): void {
  const { connection } = pinned
  if (connection.name === name) return
  pinned.sendHidden(encodeCommand(['CLIENT', 'SETNAME', name]), { command: setNameCommand })
  connection.name = name
}
