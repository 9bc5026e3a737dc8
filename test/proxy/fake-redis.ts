import { createServer, type Server, type Socket } from 'node:net'
import { BufferArgs } from '@firebreak/core/commands'
import { RequestParser } from '@firebreak/core/resp'

/** A server that answers as a test says: each request, as its words, with bytes or later on its socket. */
export class FakeRedis {
  readonly sockets = new Set<Socket>()
  /** All that it was asked, as words. */
  readonly requests: string[][] = []
  readonly #server: Server

  private constructor(answer: (words: string[], socket: Socket) => string | undefined) {
    this.#server = createServer((socket) => {
      this.sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => this.sockets.delete(socket))
      const parser = new RequestParser()
      const args = new BufferArgs(parser)
      let rest: Buffer = Buffer.alloc(0)
      socket.on('data', (chunk) => {
        rest = Buffer.concat([rest, chunk])
        let at = 0
        for (;;) {
          const next = parser.parse(rest, at, rest.length)
          if (next === 0) break
          const words = Array.from({ length: args.length }, (_, index) =>
            rest.toString('latin1', parser.startOf(index), parser.endOf(index)),
          )
          this.requests.push(words)
          const reply = answer(words, socket)
          if (reply !== undefined) socket.write(reply, 'latin1')
          at = next
        }
        rest = Buffer.from(rest.subarray(at))
        parser.reset()
      })
    })
  }

  static async start(answer: (words: string[], socket: Socket) => string | undefined): Promise<FakeRedis> {
    const fake = new FakeRedis(answer)
    await new Promise<void>((resolve) => fake.#server.listen(0, '127.0.0.1', resolve))
    return fake
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** The answer to CLUSTER SLOTS of nodes that share all slots evenly, in their order. */
export function slotsOf(ports: readonly number[]): string {
  const size = 16_384 / ports.length
  const ranges = ports.map((port, index) => {
    const [first, last] = [Math.ceil(index * size), Math.ceil((index + 1) * size) - 1]
    return `*3\r\n:${first}\r\n:${last}\r\n*2\r\n$9\r\n127.0.0.1\r\n:${port}\r\n`
  })
  return `*${ports.length}\r\n${ranges.join('')}`
}
