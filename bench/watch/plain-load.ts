import { connect, type Socket } from 'node:net'
import { encodeCommand } from '@firebreak/core/resp'

/** How applications ask: many connections, each with one command on its way. */
export class PlainLoad {
  readonly #sockets: readonly Socket[]

  private constructor(sockets: readonly Socket[]) {
    this.#sockets = sockets
  }

  static async open(port: number, connections = 50): Promise<PlainLoad> {
    const sockets = await Promise.all(
      Array.from(
        { length: connections },
        () =>
          new Promise<Socket>((resolve, reject) => {
            const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => resolve(socket))
            socket.once('error', reject)
          }),
      ),
    )
    return new PlainLoad(sockets)
  }

  /** Sends so many commands; each reply must fit in one piece, as replies of 100 bytes do. */
  async run(operations: number, commandOf: (index: number) => readonly string[]): Promise<void> {
    let next = 0
    await Promise.all(
      this.#sockets.map(
        (socket) =>
          new Promise<void>((resolve) => {
            const ask = () => {
              if (next < operations) socket.write(encodeCommand(commandOf(next++)))
              else {
                socket.off('data', ask)
                resolve()
              }
            }
            socket.on('data', ask)
            ask()
          }),
      ),
    )
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}
