import { keySlotOfBytes } from '@firebreak/core/commands'
import { encodeCommand, encodeReply, ReplyDecoder } from '@firebreak/core/resp'
import type { ProxyClient } from '../client/proxy-client.ts'
import type { UpstreamLostError } from '../errors.ts'
import type { ReplyTarget, SharedLane } from '../upstream/shared-lane.ts'

/** What CLUSTER COUNTKEYSINSLOT or GETKEYSINSLOT asks for. */
export interface SlotWalkOptions {
  readonly slot: number
  /** This many keys are enough. */
  readonly most: number
  readonly isCount: boolean
}

/** Keys that one SCAN visits. */
const stepKeys = 1000

/**
 * Finds the keys of a slot in a Redis that knows no slots: goes through all its keys, a few at a time, so that nobody
 * waits for it. It costs a SCAN over everything, and only the keys of the one slot are held.
 */
export class SlotWalk implements ReplyTarget {
  readonly #client: ProxyClient
  readonly #options: SlotWalkOptions
  readonly #slot: number
  readonly #lane: SharedLane
  /** SCAN may return a key twice. */
  readonly #found = new Map<string, Uint8Array>()
  #pieces: Buffer[] = []
  #cursor = '0'

  constructor(client: ProxyClient, options: SlotWalkOptions) {
    this.#client = client
    this.#options = options
    this.#lane = client.lanes.forCommands()
    this.#slot = client.slots.take()
  }

  goOn(): void {
    const request = encodeCommand(['SCAN', this.#cursor, 'COUNT', String(stepKeys)])
    const { host, request: at } = this.#client
    this.#lane.send(request, 0, request.length, this, 0, at.command.id, host.turn.nowMs)
  }

  onReply(_tag: number, bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void {
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)))
    if (!isLast || this.#client.isClosed) return
    const reply = Buffer.concat(this.#pieces)
    this.#pieces = []
    // A client that may not SCAN may not search for keys this way either.
    if (type === 0x2d) {
      this.#client.answer(this.#slot, reply)
      return
    }
    this.#take(reply)
    if (this.#cursor !== '0' && this.#found.size < this.#options.most) this.goOn()
    else this.#answer()
  }

  onLost(_tag: number, error: UpstreamLostError, wasSent: boolean): void {
    this.#client.onLost(this.#slot, error, wasSent)
  }

  #take(reply: Buffer): void {
    const decoder = new ReplyDecoder({ bulk: 'copy' })
    decoder.feed(reply)
    const [cursor, keys] = decoder.next() as [Uint8Array, Uint8Array[]]
    this.#cursor = Buffer.from(cursor).toString()
    for (const key of keys) {
      if (keySlotOfBytes(key, 0, key.length) !== this.#options.slot) continue
      this.#found.set(Buffer.from(key).toString('latin1'), key)
    }
  }

  #answer(): void {
    const { isCount, most } = this.#options
    const keys = [...this.#found.values()].slice(0, most)
    this.#client.answer(this.#slot, encodeReply(isCount ? keys.length : keys, this.#client.session.version))
  }
}
