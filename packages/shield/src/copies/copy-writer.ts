import type { RedundantKeysStrategy } from '@firebreak/core'
import { encodeCommand } from '@firebreak/core/resp'
import type { CopiedKey, CopyMeans } from './copied-key.ts'
import { livesOf, longestLifeMs, vouchMs } from './copy-lives.ts'
import { encodeScript } from './copy-script.ts'
import type { CopyServers } from './copy-servers.ts'
import { markerOf, newestOf, ownershipOf } from './own-names.ts'
import type { Picture } from './picture.ts'
import type { PlacedCopy } from './place-copies.ts'
import type { PlacedCopies } from './placed-copies.ts'

/** Writes the copies of a key to their servers, and records which of them are ours. */
export class CopyWriter {
  readonly #key: CopiedKey
  readonly #means: CopyMeans
  readonly #servers: CopyServers
  readonly #placed: PlacedCopies
  readonly #ttlJitterMs: number
  readonly #hasTtlOfKey: boolean
  #isClosed = false

  constructor(
    key: CopiedKey,
    means: CopyMeans,
    servers: CopyServers,
    placed: PlacedCopies,
    strategy: RedundantKeysStrategy,
  ) {
    this.#key = key
    this.#means = means
    this.#servers = servers
    this.#placed = placed
    this.#ttlJitterMs = strategy.ttlJitterMs
    this.#hasTtlOfKey = strategy.ttl === 'key'
  }

  /** True if copies live as long as their key: one that nobody removes may stay for days. */
  get hasTtlOfKey(): boolean {
    return this.#hasTtlOfKey
  }

  /** Writes a picture to all copies that have no newer one. `isFollowed`: the next change is sure to be written too. */
  putAll(picture: Picture, isFollowed: boolean): void {
    for (const copy of this.#placed.all) this.put(copy, picture, isFollowed)
  }

  put(copy: PlacedCopy, picture: Picture, isFollowed: boolean): void {
    const args = [picture.version, this.#key.bytes, ...this.#livesFor(picture, isFollowed), picture.dump ?? '']
    // What was an application's own key a moment ago stays visible until the server says otherwise.
    const answered = this.#placed.isForeign(copy) ? undefined : this.#key.space.ownCopies.ask(copy.bytes)
    this.#servers.ask(copy.slot, encodeScript('put', keysOf(copy), args), (value) => {
      answered?.()
      const said = value instanceof Uint8Array ? Buffer.from(value).toString() : value
      if (said === 'put' || said === 'newer') this.#noteOwner(copy, true)
      if (said === 'foreign') this.#noteOwner(copy, false)
    })
  }

  /**
   * Asks who owns the copies that are not known to be ours. A put lost with its connection left that unknown, and is
   * not repeated if another process has written the copy since; and an application's own key may have become a copy.
   */
  look(): void {
    const { ownCopies } = this.#key.space
    for (const copy of this.#placed.all) {
      if (ownCopies.knows(copy.bytes)) continue
      this.#servers.ask(copy.slot, encodeCommand(['GET', ownershipOf(copy.bytes)]), (value) => {
        if (value instanceof Uint8Array) this.#noteOwner(copy, Buffer.compare(value, this.#key.bytes) === 0)
      })
    }
  }

  /** Renews a copy's marker; calls `onMissing` if the copy does not hold the picture. */
  renew(copy: PlacedCopy, picture: Picture, isFollowed: boolean, onMissing: () => void): void {
    const args = [picture.version, ...this.#livesFor(picture, isFollowed), this.#key.bytes]
    this.#servers.ask(copy.slot, encodeScript('renew', keysOf(copy), args), (value) => {
      if (value === 0) onMissing()
    })
  }

  /** Calls `onAnswer` once the copy is known to be gone, or with false if its server could not be asked. */
  remove(copy: PlacedCopy, onAnswer: (isDone: boolean) => void = () => {}): void {
    this.#servers.ask(copy.slot, encodeScript('drop', keysOf(copy), [this.#key.bytes, vouchMs]), (value) => {
      const isDone = typeof value === 'number'
      // If the key has copies again, this one is about to be written once more.
      if (isDone && !this.#key.hasCopy(copy.name)) this.#key.space.ownCopies.removed(copy.bytes)
      onAnswer(isDone)
    })
  }

  /** We no longer write it, but it may exist until the expiry that was set last. */
  leave({ bytes }: PlacedCopy): void {
    const now = this.#means.runtime.clock.now()
    const { ownCopies } = this.#key.space
    ownCopies.leave(bytes, now + longestLifeMs(this.#ttlJitterMs))
    ownCopies.sweep(now)
  }

  close(): void {
    this.#isClosed = true
    for (const copy of this.#placed.all) this.leave(copy)
  }

  /** The server has answered whether a copy is ours. */
  #noteOwner(copy: PlacedCopy, isOurs: boolean): void {
    const { ownCopies } = this.#key.space
    this.#placed.setForeign(copy, !isOurs)
    if (!isOurs) {
      ownCopies.delete(copy.bytes)
      return
    }
    ownCopies.add(copy.bytes)
    if (this.#isClosed || this.#placed.all.every(({ name }) => name !== copy.name)) this.leave(copy)
  }

  #livesFor(picture: Picture, isFollowed: boolean): number[] {
    const { guards, runtime } = this.#means
    return livesOf(picture, picture.isFollowed || isFollowed, {
      fallbackTtlMs: guards.fallbackTtlMs,
      ttlJitterMs: this.#ttlJitterMs,
      hasTtlOfKey: this.#hasTtlOfKey,
      now: runtime.clock.now(),
      chance: runtime.random(),
    })
  }
}

function keysOf({ bytes }: PlacedCopy): Uint8Array[] {
  return [bytes, markerOf(bytes), ownershipOf(bytes), newestOf(bytes)]
}
