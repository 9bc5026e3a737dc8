// Another client of the server that is being scanned: one GET after the other with a pause in between, in a process of
// its own. `node get-latency.ts PORT KEY`; a line on stdin ends a period and prints its median and count.
import { connect } from 'node:net'

const [port, key] = process.argv.slice(2)
const command = Buffer.from(`*2\r\n$3\r\nGET\r\n$${key!.length}\r\n${key}\r\n`)
const socket = connect({ port: Number(port), host: '127.0.0.1', noDelay: true })
let latencies: number[] = []
let sentAt = 0

function send(): void {
  sentAt = performance.now()
  socket.write(command)
}

socket.on('connect', send)
socket.on('data', () => {
  latencies.push(performance.now() - sentAt)
  setTimeout(send, 1)
})
process.stdin.on('data', () => {
  const sorted = latencies.sort((a, b) => a - b)
  process.stdout.write(
    `${JSON.stringify({ p50: sorted[sorted.length >> 1], p99: sorted[Math.floor(sorted.length * 0.99)], count: sorted.length })}\n`,
  )
  latencies = []
})
process.stdin.on('end', () => process.exit(0))
