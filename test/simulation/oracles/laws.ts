/** A promise of the guides that the simulation holds the fleet to. */
export interface Law {
  /** The guide that makes it, in `docs/guides`. */
  readonly guide: string
  /** Its words; a test finds them there. */
  readonly sentence: string
}

export const laws = {
  stale: {
    guide: 'consistency.md',
    sentence: 'A cached value is served only while its guard is known to be alive.',
  },
  ownWrites: {
    guide: 'consistency.md',
    sentence: 'A client reads what it wrote, awaited or not',
  },
  order: {
    guide: 'consistency.md',
    sentence: `For one client, reads with commands that are answered from memory never go backwards while it stays with one server's data, including reconnects.`,
  },
  ttl: {
    guide: 'consistency.md',
    sentence: `A value never outlives its key's TTL, read by PTTL together with the value`,
  },
  sameReplies: {
    guide: 'client.md',
    sentence: 'Types, Buffers, errors and shapes of RESP2 and RESP3 are those of the bare client',
  },
  unharmed: {
    guide: 'client.md',
    sentence: 'No Redis call fails or waits because of Firebreak',
  },
  limited: {
    guide: 'hub.md',
    sentence: 'A limit per process is divided among the processes of all hubs.',
  },
  agree: {
    guide: 'hub.md',
    sentence: 'A change on one hub is in force on all within about 100 ms.',
  },
  moved: {
    guide: 'hub.md',
    sentence: 'within 5 s sensors move to a hub of their list that is not cut off.',
  },
  forgotten: {
    guide: 'hub.md',
    sentence: 'After 3 s of silence the others no longer count it',
  },
  thrown: {
    guide: 'hub.md',
    sentence:
      "**The kill switch** works without the store: this hub's sensors are notified at once (`isStored: false`), and the store gets it with its audit entry when it recovers.",
  },
  healed: {
    guide: 'consistency.md',
    sentence: 'reads bypass; it reconnects after 20 to 400 ms (step `tracking`)',
  },
  versions: {
    guide: 'hub.md',
    sentence: 'An earlier version leaves alone what it does not know from a later one, and reports it once',
  },
  refused: {
    guide: 'hub.md',
    sentence:
      'A change of a rule fails with `FB_STORE_AWAY` (nothing was changed) or `FB_STORE_UNSURE` (it may have been made; resent with the same `idempotency-key` it is applied only once).',
  },
  audited: {
    guide: 'hub.md',
    sentence: 'A change and its audit entry are one step, so none is in force without the other.',
  },
  history: {
    guide: 'hub.md',
    sentence: 'Rules, switch, history and audit are shared.',
  },
  found: {
    guide: 'hub.md',
    sentence: 'A key at 1.5 thresholds is always found, however it is spread over the hubs',
  },
  once: {
    guide: 'hub.md',
    sentence:
      'counted once: the stream recognises a message published twice, the hub a duplicate report by its process, sequence and time.',
  },
  counted: {
    guide: 'client.md',
    sentence:
      'every access to every key is counted: single commands, pipelines, `MULTI`, scripts, autopipelining, `call`;',
  },
  heat: {
    guide: 'hub.md',
    sentence: 'a script on Redis adds up, decides, and appends the decision to an outbox that all hubs read.',
  },
  followed: {
    guide: 'client.md',
    sentence: '**One process follows the key**, whoever writes it, by tracking',
  },
  lapsed: {
    guide: 'hub.md',
    sentence: 'Shields keep using their table until its entries expire',
  },
  copied: {
    guide: 'client.md',
    sentence: 'rewrites the copies by version;',
  },
  cooled: {
    guide: 'client.md',
    sentence: 'When the key cools, all are removed',
  },
  copies: {
    guide: 'client.md',
    sentence:
      'all of which expire by themselves (a copy within 7 s and `ttlJitterMs`, its owner a minute later, the version counter after an hour).',
  },
  bounded: {
    guide: 'client.md',
    sentence: 'one connection to a hub, one table.',
  },
} as const satisfies Record<string, Law>

export type LawName = keyof typeof laws

/** A broken promise. */
export class BrokenLaw extends Error {
  readonly law: LawName

  constructor(law: LawName, detail: string) {
    super(`${law}: ${detail}\n  promised in ${laws[law].guide}: “${laws[law].sentence}”`)
    this.name = 'BrokenLaw'
    this.law = law
  }
}
