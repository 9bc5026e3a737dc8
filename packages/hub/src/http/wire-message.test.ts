import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { wireMessage } from './wire-message.ts'

test('a message made for all is what a WebSocket client reads, whatever its length, between messages of ws itself', async () => {
  const lengths = [0, 1, 125, 126, 127, 65_535, 65_536, 300_000]
  const payloads = lengths.map((length) => Buffer.alloc(length, length % 251))
  const server = createServer()
  const sockets = new WebSocketServer({ noServer: true })
  server.on('upgrade', (request, socket, head) => {
    sockets.handleUpgrade(request, socket, head, (connection) => {
      for (const payload of payloads) {
        connection.send(`next ${payload.length}`)
        socket.write(wireMessage(payload))
      }
      connection.close(1000)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const received: (Buffer | string)[] = []
  client.on('message', (data: Buffer, isBinary) => received.push(isBinary ? data : data.toString()))
  const code = await new Promise((resolve) => client.on('close', resolve))
  server.close()
  expect(code).toBe(1000)
  expect(received).toEqual(payloads.flatMap((payload) => [`next ${payload.length}`, payload]))
})
