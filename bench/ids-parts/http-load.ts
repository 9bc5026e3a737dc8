import { connect } from 'node:net'

/** Requests a second that one address answers to `connections` keep-alive connections, one request at a time on each. */
export function httpRate(port: number, path: string, durationMs: number, connections = 32): Promise<number> {
  const request = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`
  return new Promise((resolve, reject) => {
    let answered = 0
    let isCounting = false
    const sockets = Array.from({ length: connections }, () => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => socket.write(request))
      // A small answer comes in one piece.
      socket.on('data', (chunk) => {
        if (chunk[9] !== 0x32) reject(new Error(chunk.toString().slice(0, 300)))
        if (isCounting) answered++
        socket.write(request)
      })
      socket.on('error', reject)
      return socket
    })
    // The first tenth warms the connections up.
    setTimeout(() => {
      isCounting = true
      const startedAt = performance.now()
      setTimeout(() => {
        const seconds = (performance.now() - startedAt) / 1000
        for (const socket of sockets) socket.destroy()
        resolve(answered / seconds)
      }, durationMs)
    }, durationMs / 10)
  })
}
