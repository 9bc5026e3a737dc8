/** Tells whether a name belongs to a copy or one of its auxiliary keys. */
export type IsOurs = (name: Uint8Array) => boolean

/** If most keys are ours, drawing at random alone would take long. */
export const maxDraws = 16
/** If that many draws found nothing else, the database is small enough to scan whole. */
export const wholeScan: readonly string[] = ['SCAN', '0', 'COUNT', '10000']

/** What RANDOMKEY would have returned without copies; `ask` sends a command and returns its names as bytes. */
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
  // The server's order is as good as random: its hash has a seed.
  return names.find((candidate) => !isOurs(candidate)) ?? null
}

/** The reply to KEYS (names) or SCAN (a cursor and names) without our own keys. */
export function visibleNames(reply: unknown, isOurs: IsOurs): unknown {
  if (!Array.isArray(reply)) return reply
  if (reply.length === 2 && Array.isArray(reply[1])) return [reply[0], visibleNames(reply[1], isOurs)]
  return reply.filter((name) => !(name instanceof Uint8Array) || !isOurs(name))
}
