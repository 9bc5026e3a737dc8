import type { CachedReply } from './cached-reply.ts'

/** The replies of one key by command. Most keys are read by one command, and a `Map` would be larger than the reply. */
export class ReplySet {
  #id = ''
  #reply: CachedReply | undefined
  #more: Map<string, CachedReply> | undefined

  get size(): number {
    return (this.#reply === undefined ? 0 : 1) + (this.#more?.size ?? 0)
  }

  get(commandId: string): CachedReply | undefined {
    return this.#id === commandId ? this.#reply : this.#more?.get(commandId)
  }

  set(commandId: string, reply: CachedReply): void {
    if (this.#reply === undefined || this.#id === commandId) {
      this.#id = commandId
      this.#reply = reply
      return
    }
    this.#more ??= new Map()
    this.#more.set(commandId, reply)
  }

  clear(): void {
    this.#id = ''
    this.#reply = undefined
    this.#more = undefined
  }

  *[Symbol.iterator](): Generator<[commandId: string, reply: CachedReply]> {
    if (this.#reply !== undefined) yield [this.#id, this.#reply]
    if (this.#more !== undefined) yield* this.#more
  }
}
