import type { Lease } from '../watcher/lease.ts'

/** A reply whose time is nearly over is reloaded in this part of it, by one reader. */
const refreshFrom = 0.75
const refreshJitter = 0.15
/** A shorter life is that of a key which ends: loading it again and again would not lengthen it. */
const leastRefreshedTtlMs = 200

/**
 * One command's reply, kept as the bytes that Redis sent (RESP3) and as what its consumers made of them. A proxy sends
 * the bytes; a client hands out a JavaScript value, which it decodes once and keeps here under the number of its form,
 * so that a hit decodes and copies nothing.
 */
export class CachedReply {
  readonly bytes: Uint8Array
  /** By the shield's clock. */
  readonly expiresAt: number
  readonly lease: Lease
  /** From then on one reader starts a new load while all are still served this reply; endless where none shall. */
  refreshAt = Number.POSITIVE_INFINITY
  /** Reloads the reply. */
  refresh: (() => void) | undefined
  /** What consumers made of the bytes, by the number of their form (see `nextReplyForm`). */
  readonly forms: unknown[] = []

  constructor(bytes: Uint8Array, expiresAt: number, lease: Lease) {
    this.bytes = bytes
    this.expiresAt = expiresAt
    this.lease = lease
  }

  /** Has the reply, which lives for `ttlMs` in all, reloaded before it ends; `dice` is a random number below one. */
  refreshBefore(ttlMs: number, dice: number, refresh: () => void): void {
    if (ttlMs < leastRefreshedTtlMs) return
    // Processes that loaded at one instant must not load again at one.
    this.refreshAt = this.expiresAt - ttlMs * (1 - refreshFrom - dice * refreshJitter)
    this.refresh = refresh
  }

  refreshOnce(): void {
    this.refreshAt = Number.POSITIVE_INFINITY
    this.refresh?.()
  }
}

let formCount = 0

/** A number for a way of decoding replies, unique in this process. */
export function nextReplyForm(): number {
  return formCount++
}

/** What a reply takes of the cache's bytes: some 200 for the objects around it, and as much again for what is decoded. */
export function replyCost(commandId: string, reply: CachedReply): number {
  return reply.bytes.length * 2 + commandId.length * 2 + 200
}

/** A copy in memory of its own: the reply is a view on the socket's chunk, which it would keep alive. */
export function ownBytes(view: Uint8Array): Uint8Array {
  const copy = Buffer.allocUnsafeSlow(view.length)
  copy.set(view)
  return copy
}
