import type { RespValue } from '@firebreak/core/resp'
import type { SharedByKeys } from '../cache/shared-by-keys.ts'
import type { TrackingWatcher } from '../watcher/tracking-watcher.ts'
import type { CopiedKey } from './copied-key.ts'
import { encodeScript } from './copy-script.ts'
import { refresherOf, versionOf } from './own-names.ts'
import { decodeAnswer, type Picture, pictureOf } from './picture.ts'

const counterMs = 3_600_000

/** The servers of a key and its copies, asked on the connections of their watchers. */
export class CopyServers {
  readonly #key: CopiedKey
  readonly #watchers: SharedByKeys['watchers']

  constructor(key: CopiedKey, watchers: SharedByKeys['watchers']) {
    this.#key = key
    this.#watchers = watchers
  }

  /** The watcher of a slot's node; undefined while that is not known. */
  watcherAt(slot: number): TrackingWatcher | undefined {
    return this.#watchers.at(this.#key.space, slot)
  }

  canRead(slot: number): boolean {
    return this.watcherAt(slot)?.canRead === true
  }

  /** True while the server notifies us of the key's changes. */
  get canFollow(): boolean {
    return this.watcherAt(this.#key.slot)?.state === 'live'
  }

  /** Sends a command to a slot's node; the answer is undefined if it cannot be asked now. */
  ask(slot: number, bytes: Uint8Array, onValue: (value: RespValue | undefined, askedAt: number) => void): void {
    const watcher = this.watcherAt(slot)
    if (watcher === undefined || !watcher.canRead) {
      onValue(undefined, Number.NEGATIVE_INFINITY)
      return
    }
    watcher.transact(this.#key.space.database, bytes, 1, (reply, sentAt) =>
      onValue(reply === undefined ? undefined : decodeAnswer(reply), sentAt),
    )
  }

  /** Takes a picture of the key: from then on the server notifies us of the next change. */
  take(onPicture: (picture: Picture | undefined) => void): void {
    const { bytes, slot } = this.#key
    const keys = [bytes, versionOf(bytes), refresherOf(bytes)]
    this.ask(slot, encodeScript('take', keys, [counterMs]), (value, askedAt) => onPicture(pictureOf(value, askedAt)))
  }
}
