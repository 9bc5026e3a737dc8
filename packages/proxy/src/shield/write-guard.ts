import type { UpstreamLostError } from '../errors.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'

/** Passes on the reply of a write, or of a read that bypasses memory, and reports when it has arrived or never will. */
export class WriteGuard implements ReplyTarget {
  readonly #target: ReplyTarget
  readonly #onSettled: () => void

  constructor(target: ReplyTarget, onSettled: () => void) {
    this.#target = target
    this.#onSettled = onSettled
  }

  onReply(tag: number, bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void {
    // Before the client learns of it: its next read must not find what was cached before the write.
    if (isLast) this.#onSettled()
    this.#target.onReply(tag, bytes, start, end, isLast, type)
  }

  onLost(tag: number, error: UpstreamLostError, wasSent: boolean): void {
    this.#onSettled()
    this.#target.onLost(tag, error, wasSent)
  }

  isStalled(tag: number): boolean {
    return this.#target.isStalled?.(tag) ?? false
  }

  whenUnstalled(callback: () => void, tag: number): void {
    this.#target.whenUnstalled?.(callback, tag)
  }

  isBehind(tag: number): boolean {
    return this.#target.isBehind?.(tag) ?? false
  }

  whenCaughtUp(callback: () => void, tag: number): void {
    this.#target.whenCaughtUp?.(callback, tag)
  }
}
