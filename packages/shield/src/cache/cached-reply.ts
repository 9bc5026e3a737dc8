import type { Lease } from '../watcher/lease.ts'
import type { ReadCommand } from './read-command.ts'

/** A reply is reloaded by one reader in the last part of its life, from this fraction on. */
const refreshFrom = 0.75
const refreshJitter = 0.15
/** A shorter life means that the key itself is about to expire: reloading would not lengthen it. */
const leastRefreshedTtlMs = 200

/**
 * Reloads replies. One object serves all replies of a key: a closure and a command for each would be larger than most
 * replies.
 */
export interface ReplyRefresher {
  /** Without a command it is the GET of the key. */
  refresh(command: ReadCommand | undefined): void
}

/**
 * One command's reply, kept as the bytes that Redis sent (RESP3) and as whatever its consumers made of them. A proxy
 * sends the bytes; a client returns a JavaScript value, which it decodes once and stores here under the number of its
 * form, so that a hit neither decodes nor copies.
 */
export class CachedReply {
  readonly bytes: Uint8Array
  /** By the shield's clock. */
  readonly expiresAt: number
  readonly lease: Lease
  /** From this time on one reader starts a new load while everyone still gets this reply; infinite if none should. */
  refreshAt = Number.POSITIVE_INFINITY
  /** Reloads the reply, by this command. */
  refresher: ReplyRefresher | undefined
  command: ReadCommand | undefined
  /** What consumers made of the bytes, by the number of their form (see `nextReplyForm`). */
  readonly forms: unknown[] = []

  constructor(bytes: Uint8Array, expiresAt: number, lease: Lease) {
    this.bytes = bytes
    this.expiresAt = expiresAt
    this.lease = lease
  }

  /**
   * Arranges for the reply, which lives `ttlMs` in total, to be reloaded before it ends; `dice` is a random number
   * below 1.
   */
  refreshBefore(ttlMs: number, dice: number, refresher: ReplyRefresher, command: ReadCommand): void {
    if (ttlMs < leastRefreshedTtlMs) return
    // Processes that loaded at the same instant must not reload at the same instant.
    this.refreshAt = this.expiresAt - ttlMs * (1 - refreshFrom - dice * refreshJitter)
    this.refresher = refresher
    if (command.id !== 'GET') this.command = command
  }

  refreshOnce(): void {
    this.refreshAt = Number.POSITIVE_INFINITY
    this.refresher?.refresh(this.command)
  }
}

let formCount = 0

/** A number for a way of decoding replies, unique in this process. */
export function nextReplyForm(): number {
  return formCount++
}

/**
 * The bytes that a reply counts as in the cache: about 200 for the objects around it, plus its size once more for the
 * decoded form.
 */
export function replyCost(commandId: string, reply: CachedReply): number {
  return reply.bytes.length * 2 + commandId.length * 2 + 200
}

/** Copies it: the reply is a view on the socket's chunk, which it would keep alive. */
export function ownBytes(view: Uint8Array): Uint8Array {
  const copy = Buffer.allocUnsafeSlow(view.length)
  copy.set(view)
  return copy
}
