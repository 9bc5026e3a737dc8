import { encodeCommand } from '@firebreak/core'
import { type ProxyCommand, proxyCommands } from '../commands/proxy-command.ts'
import type { UpstreamConnection } from '../upstream/upstream-connection.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'

/** The command CLIENT SETNAME, for names that the proxy shows itself. */
export const setNameCommand: ProxyCommand = proxyCommands.find(({ name }) => name === 'CLIENT SETNAME')!

/** Takes a connection's name away. */
export const noName: Uint8Array = encodeCommand(['CLIENT', 'SETNAME', ''])

const minus = 0x2d
const push = 0x3e

/** Gives a connection back once the server has forgotten its name; where it does not, nobody else may have it. */
export function giveBackUnnamed(node: UpstreamNode, connection: UpstreamConnection): void {
  connection.receiver = {
    onReply: (_bytes, _start, _end, isLast, type) => {
      if (!isLast || type === push) return
      if (type === minus) node.dispose(connection)
      else node.giveBack(connection)
    },
    onLost: () => node.dispose(connection),
  }
  // Whoever has had it may have been slow.
  connection.resume()
  connection.outlet.put(noName, 0, noName.length)
}
