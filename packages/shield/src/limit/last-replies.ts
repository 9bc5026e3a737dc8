import type { CachedReply } from '../cache/cached-reply.ts'

const maxReplies = 256
const maxReplyBytes = 1024 * 1024

/** The last replies to a key's reads, by command; the oldest are dropped first. */
export class LastReplies {
  readonly #replies = new Map<string, CachedReply>()

  get(commandId: string, now: number): CachedReply | undefined {
    const reply = this.#replies.get(commandId)
    return reply === undefined || now >= reply.expiresAt ? undefined : reply
  }

  clear(): void {
    this.#replies.clear()
  }

  set(commandId: string, reply: CachedReply): void {
    this.#replies.delete(commandId)
    if (reply.bytes.length > maxReplyBytes) return
    if (this.#replies.size >= maxReplies) this.#replies.delete(this.#replies.keys().next().value!)
    this.#replies.set(commandId, reply)
  }
}
