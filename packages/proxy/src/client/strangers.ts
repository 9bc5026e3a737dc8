import type { ClientConnection } from './client-connection.ts'

/** The clients that have not logged in to a proxy with users, in the order in which they connected. */
export class Strangers {
  readonly #clients = new Set<ClientConnection>()
  /** Number closed since the start. */
  closed = 0

  add(client: ClientConnection): void {
    if (!client.session.isKnown) this.#clients.add(client)
  }

  delete(client: ClientConnection): void {
    this.#clients.delete(client)
  }

  /** Closes those that connected before `sinceMs` and still have not logged in. */
  closeOlder(sinceMs: number): void {
    for (const client of this.#clients) {
      if (client.sinceMs > sinceMs) return
      this.#clients.delete(client)
      if (client.session.isKnown) continue
      this.closed++
      client.destroy()
    }
  }
}
