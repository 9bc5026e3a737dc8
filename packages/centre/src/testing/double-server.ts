import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A small HTTP server that can go down and come back on the same port. */
export class DoubleServer {
  readonly #handle: (request: IncomingMessage, body: string, response: ServerResponse) => void
  #server: Server | undefined
  #port = 0

  constructor(handle: (request: IncomingMessage, body: string, response: ServerResponse) => void) {
    this.#handle = handle
  }

  get port(): number {
    return this.#port
  }

  async start(): Promise<void> {
    const server = createServer((request, response) => {
      let body = ''
      request.setEncoding('utf8')
      request.on('data', (chunk: string) => {
        body += chunk
      })
      request.on('end', () => this.#handle(request, body, response))
    })
    this.#server = server
    await new Promise<void>((resolve) => void server.listen(this.#port, '127.0.0.1', resolve))
    this.#port = (server.address() as AddressInfo).port
  }

  async stop(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  }
}
