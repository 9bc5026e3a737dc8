import { encodeCommand } from '@firebreak/core/resp'
import { type ProxyCommand, proxyCommands } from '../commands/proxy-command.ts'
import type { PinnedLane } from './pinned-lane.ts'

/** Takes a connection's name away. */
export const noName: Uint8Array = encodeCommand(['CLIENT', 'SETNAME', ''])

const setNameCommand: ProxyCommand = proxyCommands.find(({ name }) => name === 'CLIENT SETNAME')!

/** Lets the server know a connection by its client's name, not by that of who had it before. */
export function showName(pinned: PinnedLane, name: string): void {
  const { connection } = pinned
  if (connection.name === name) return
  pinned.sendHidden(encodeCommand(['CLIENT', 'SETNAME', name]), { command: setNameCommand })
  connection.name = name
}
