import { createHash } from 'node:crypto'
import { CachedReply } from '../cache/cached-reply.ts'
import type { DiskReply, DiskTier } from './disk-tier.ts'

interface KeptReply extends DiskReply, Pick<CachedReply, 'refreshAt' | 'refresher' | 'command'> {}

/**
 * The replies of one hot key that are on disk. A reply that was read back into memory stays here too, so that it need
 * not be rewritten when memory evicts it again.
 */
export class DiskReplies {
  readonly #tier: DiskTier
  readonly #scope: string
  readonly #replies = new Map<string, KeptReply>()

  /** `scope` identifies the key among all keys of all clusters, and is the same after a restart. */
  constructor(tier: DiskTier, scope: string) {
    this.#tier = tier
    this.#scope = scope
  }

  get size(): number {
    return this.#replies.size
  }

  /** True if replies should be written as soon as they are known. */
  get isWrittenThrough(): boolean {
    return this.#tier.options.survivesRestart
  }

  /** Ensures that a reply is on disk; false if it cannot be. */
  keep(commandId: string, reply: CachedReply): boolean {
    const known = this.#replies.get(commandId)
    if (known !== undefined && this.#tier.holds(known)) return true
    const { bytes, expiresAt, lease, refreshAt, refresher, command } = reply
    const kept: KeptReply = {
      id: this.#idOf(commandId),
      bytes: bytes.length,
      expiresAt,
      lease,
      refreshAt,
      refresher,
      command,
      onEvicted: () => {
        if (this.#replies.get(commandId) === kept) this.#replies.delete(commandId)
      },
    }
    if (!this.#tier.put(kept, bytes)) return false
    this.#replies.set(commandId, kept)
    return true
  }

  /** The reply to a command, if it is on disk and may be served now. */
  find(commandId: string, now: number): DiskReply | undefined {
    const kept = this.#replies.get(commandId)
    if (kept === undefined || now >= kept.expiresAt || now >= kept.lease.aliveUntil) return undefined
    if (this.#tier.holds(kept)) return kept
    this.#replies.delete(commandId)
    return undefined
  }

  /** Reads a reply that was found; undefined if it was dropped meanwhile. */
  read(found: DiskReply, onRead: (reply: CachedReply | undefined) => void): void {
    this.#tier.read(found, (bytes) => {
      if (bytes === undefined) {
        onRead(undefined)
        return
      }
      const { expiresAt, lease, refreshAt, refresher, command } = found as KeptReply
      const reply = new CachedReply(bytes, expiresAt, lease)
      reply.refreshAt = refreshAt
      reply.refresher = refresher
      reply.command = command
      onRead(reply)
    })
  }

  /** Reads a reply that nothing vouches for; false if there is none. */
  readUntrusted(commandId: string, onRead: (bytes: Uint8Array | undefined) => void): boolean {
    return this.#tier.readUntrusted(this.#idOf(commandId), onRead)
  }

  removeUntrusted(commandId: string): void {
    this.#tier.removeUntrusted(this.#idOf(commandId))
  }

  /** Drops the reply to one command, because there is a newer one. */
  forget(commandId: string): void {
    const kept = this.#replies.get(commandId)
    if (kept === undefined) return
    this.#replies.delete(commandId)
    this.#tier.remove(kept)
  }

  /** Drops all of them. */
  drop(): void {
    for (const kept of this.#replies.values()) this.#tier.remove(kept)
    this.#replies.clear()
  }

  #idOf(commandId: string): string {
    return createHash('sha256').update(`${this.#scope}\n${commandId}`).digest('base64url')
  }
}
