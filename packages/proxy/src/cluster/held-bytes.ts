import type { ProxyClient } from '../client/proxy-client.ts'

/** This much of a reply may be held however much its client has unread. */
const smallBytes = 4096

/** The part of a reply that is held until it can be sent; it counts as unread by its client. */
export class HeldBytes {
  readonly #client: ProxyClient
  #bytes = 0

  constructor(client: ProxyClient) {
    this.#client = client
  }

  /** Adds some bytes; false if that is too many to hold. */
  add(bytes: number): boolean {
    const client = this.#client
    this.#bytes += bytes
    client.backlog.heldBytes += bytes
    return this.#bytes <= smallBytes || !(client.isClosed || client.isBehind())
  }

  /** Releases all of them. */
  release(): void {
    const client = this.#client
    const wasBehind = client.isBehind()
    client.backlog.heldBytes -= this.#bytes
    this.#bytes = 0
    if (wasBehind) client.onDrain()
  }
}
