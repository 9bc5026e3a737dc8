/** Commands that name no key: on a cluster, only `SendOptions.key` says which node they are meant for. */
const keylessCommands = new Set([
  'CLIENT',
  'CLUSTER',
  'CONFIG',
  'INFO',
  'PING',
  'ROLE',
  'SCRIPT',
  'TIME',
  'WAIT',
  'WAITAOF',
])

/** True for a command that we must route to the node of `SendOptions.key` ourselves. */
export function isKeyless(command: string): boolean {
  return keylessCommands.has(command.toUpperCase())
}
