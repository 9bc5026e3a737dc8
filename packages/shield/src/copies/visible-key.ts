/** Tells whether a name is of a copy, or of what stands beside one. */
export type IsOurs = (name: Uint8Array) => boolean

/** Where most keys are ours, chance alone would take long. */
export const maxDraws = 16
/** Where so many draws found nothing else, a database is small enough to be seen whole by this. */
export const wholeScan: readonly string[] = ['SCAN', '0', 'COUNT', '10000']

/** What RANDOMKEY would have drawn if there were no copies; `ask` sends a command and gives its names as bytes. */
export async function visibleKey(
  drawn: Uint8Array | null,
  isOurs: IsOurs,
  ask: (words: readonly string[]) => Promise<unknown>,
): Promise<Uint8Array | null> {
  let name = drawn
  for (let draw = 0; draw < maxDraws; draw++) {
    if (name === null || !isOurs(name)) return name
    name = (await ask(['RANDOMKEY'])) as Uint8Array | null
  }
  const [, names] = (await ask(wholeScan)) as [unknown, Uint8Array[]]
  // The server's order is as good as chance: its hash has a seed.
  return names.find((candidate) => !isOurs(candidate)) ?? null
}

/** The reply to KEYS (names) or SCAN (a cursor and names) without what is ours. */
export function visibleNames(reply: unknown, isOurs: IsOurs): unknown {
  if (!Array.isArray(reply)) return reply
  if (reply.length === 2 && Array.isArray(reply[1])) return [reply[0], visibleNames(reply[1], isOurs)]
  return reply.filter((name) => !(name instanceof Uint8Array) || !isOurs(name))
}
