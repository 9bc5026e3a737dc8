import type { UpstreamLostError } from '../errors.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'

const maxEntries = 1024
const maxReplyBytes = 1024 * 1024

/** The last replies to reads of limited keys, for a limit that serves an old answer instead of none. */
export class StaleReplies {
  readonly #replies = new Map<string, Buffer>()

  get(id: string): Buffer | undefined {
    return this.#replies.get(id)
  }

  /** Passes a reply on to `target` and keeps it under `id`. */
  keeping(id: string, target: ReplyTarget): ReplyTarget {
    return new KeepingTarget(target, (reply) => this.#keep(id, reply))
  }

  #keep(id: string, reply: Buffer): void {
    this.#replies.delete(id)
    if (this.#replies.size >= maxEntries) this.#replies.delete(this.#replies.keys().next().value!)
    this.#replies.set(id, reply)
  }
}

class KeepingTarget implements ReplyTarget {
  readonly #target: ReplyTarget
  readonly #onWhole: (reply: Buffer) => void
  #pieces: Buffer[] | undefined = []
  #length = 0

  constructor(target: ReplyTarget, onWhole: (reply: Buffer) => void) {
    this.#target = target
    this.#onWhole = onWhole
  }

  onReply(tag: number, bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void {
    this.#length += end - start
    if (this.#length > maxReplyBytes || type === 0x2d) this.#pieces = undefined
    this.#pieces?.push(Buffer.from(bytes.subarray(start, end)))
    if (isLast && this.#pieces !== undefined) this.#onWhole(Buffer.concat(this.#pieces))
    this.#target.onReply(tag, bytes, start, end, isLast, type)
  }

  onLost(tag: number, error: UpstreamLostError, wasSent: boolean): void {
    this.#target.onLost(tag, error, wasSent)
  }
}
