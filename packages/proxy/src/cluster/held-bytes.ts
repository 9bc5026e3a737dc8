import type { ProxyClient } from '../client/proxy-client.ts'

/** So much of a reply may be held whatever else its client leaves unread. */
const smallBytes = 4096

/** What is held of one reply until it can go out; it counts as what its client leaves unread. */
export class HeldBytes {
  readonly #client: ProxyClient
  #bytes = 0

  constructor(client: ProxyClient) {
    this.#client = client
  }

  /** Counts some more; false where they are too many to be held. */
  add(bytes: number): boolean {
    const client = this.#client
    this.#bytes += bytes
    client.backlog.heldBytes += bytes
    return this.#bytes <= smallBytes || !(client.isClosed || client.isBehind())
  }

  /** They are held no longer. */
  release(): void {
    const client = this.#client
    const wasBehind = client.isBehind()
    client.backlog.heldBytes -= this.#bytes
    this.#bytes = 0
    if (wasBehind) client.onDrain()
  }
}
