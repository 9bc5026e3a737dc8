import { connect } from 'node:net'

const lineFeed = 10

/** Replies a second to one pipelined command, `depth` requests in flight on each of `connections`. */
export function respRate(
  port: number,
  command: readonly string[],
  durationMs: number,
  connections = 4,
  depth = 200,
): Promise<number> {
  const one = `*${command.length}\r\n${command.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`
  const half = Buffer.from(one.repeat(depth / 2))
  return new Promise((resolve, reject) => {
    let answered = 0
    const startedAt = performance.now()
    const sockets = Array.from({ length: connections }, () => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => {
        socket.write(half)
        socket.write(half)
      })
      let open = 0
      // Every reply to INCR is one line; whenever half of the window has come, as much is sent again.
      socket.on('data', (chunk) => {
        if (chunk[0] === 0x2d) reject(new Error(chunk.toString().slice(0, 200)))
        let lines = 0
        for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, at + 1)) lines++
        answered += lines
        for (open += lines; open >= depth / 2; open -= depth / 2) socket.write(half)
      })
      socket.on('error', reject)
      return socket
    })
    setTimeout(() => {
      const seconds = (performance.now() - startedAt) / 1000
      for (const socket of sockets) socket.destroy()
      resolve(answered / seconds)
    }, durationMs)
  })
}
