/** Commands that name no key: on a cluster only `SendOptions.key` can say which node they are meant for. */
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

/** True where a command must be sent to the node of `SendOptions.key` by hand. */
export function isKeyless(command: string): boolean {
  return keylessCommands.has(command.toUpperCase())
}
