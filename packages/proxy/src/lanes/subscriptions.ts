/** What a reply on a subscribed connection is. */
export interface SubscriptionReply {
  /** Such as `message`, `subscribe` or `pong`; empty for any other reply. */
  readonly kind: string
  /** In a confirmation: the number of subscriptions now. */
  readonly count: number
}

/** Messages, which are sent without a request. */
export const messageKinds: ReadonlySet<string> = new Set(['message', 'pmessage', 'smessage', 'invalidate'])
/** Confirmations of (un)subscribing. */
export const confirmationKinds: ReadonlySet<string> = new Set([
  'subscribe',
  'psubscribe',
  'ssubscribe',
  'unsubscribe',
  'punsubscribe',
  'sunsubscribe',
])

const other: SubscriptionReply = { kind: '', count: 0 }
const head = /^[*>]\d+\r\n\$\d+\r\n([a-z]{4,12})\r\n/
const lastInteger = /:(\d+)\r\n$/

/** Distinguishes messages, confirmations and other replies by the first word of an array or push. */
export function subscriptionReplyOf(reply: Uint8Array): SubscriptionReply {
  const start = Buffer.from(reply.buffer, reply.byteOffset, Math.min(reply.length, 48)).toString('latin1')
  const kind = head.exec(start)?.[1]
  if (kind === undefined) return other
  if (!confirmationKinds.has(kind)) return { kind, count: 0 }
  const from = Math.max(0, reply.length - 24)
  const end = Buffer.from(reply.buffer, reply.byteOffset + from, reply.length - from).toString('latin1')
  const count = lastInteger.exec(end)?.[1]
  return count === undefined ? other : { kind, count: Number(count) }
}

/** How many channels of each kind a connection is subscribed to, by the server's confirmations. */
export class Subscriptions {
  #channels = 0
  #patterns = 0
  #shardChannels = 0

  get isAny(): boolean {
    return this.#channels + this.#patterns + this.#shardChannels > 0
  }

  /** Handles a confirmation: `count` is its number, which channels and patterns share. */
  confirm(kind: string, count: number): void {
    if (kind === 'ssubscribe' || kind === 'sunsubscribe') this.#shardChannels = count
    else if (kind.startsWith('p')) this.#patterns = count - this.#channels
    else this.#channels = count - this.#patterns
  }

  /** How many confirmations a command with this many channels gets; with none it unsubscribes from all. */
  confirmationsOf(command: string, channels: number): number {
    if (channels > 0) return channels
    if (command.startsWith('P')) return Math.max(1, this.#patterns)
    return Math.max(1, command === 'SUNSUBSCRIBE' ? this.#shardChannels : this.#channels)
  }
}
