import type { Lease } from '../watcher/lease.ts'

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
  /** Loads the reply anew. */
  refresh: (() => void) | undefined
  /** What consumers made of the bytes, by the number of their form (see `nextReplyForm`). */
  readonly forms: unknown[] = []

  constructor(bytes: Uint8Array, expiresAt: number, lease: Lease) {
    this.bytes = bytes
    this.expiresAt = expiresAt
    this.lease = lease
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
