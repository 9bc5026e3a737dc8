/** What hub, proxy and command need: the first version with `node:sqlite`. The library packages run on 20.19. */
const serverNode = [22, 13] as const

/** The message if this Node is too old for `what`; undefined if it is new enough. */
export function tooOldNode(what: string, version: string = process.versions.node): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > serverNode[0] || (major === serverNode[0] && minor >= serverNode[1])) return undefined
  return `${what} needs Node ${serverNode.join('.')} or newer; this is ${version}`
}
