import type { ClientConnection } from './client-connection.ts'

/** Clients of a proxy with users that have not logged in, in the order in which they came. */
export class Strangers {
  readonly #clients = new Set<ClientConnection>()
  /** Closed since the start. */
  closed = 0

  add(client: ClientConnection): void {
    if (!client.session.isKnown) this.#clients.add(client)
  }

  delete(client: ClientConnection): void {
    this.#clients.delete(client)
  }

  /** Closes those that came before `sinceMs` and have not logged in by now. */
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
