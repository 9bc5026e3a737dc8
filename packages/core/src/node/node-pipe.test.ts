import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { socketPipe } from './node-pipe.ts'

const server = createServer({ allowHalfOpen: true })
const accepted: Socket[] = []
server.on('connection', (socket) => accepted.push(socket))
afterEach(() => {
  for (const socket of accepted.splice(0)) socket.destroy()
  server.close()
})

async function open(): Promise<{ close(): void; peer: Socket }> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const pipe = await new Promise<ReturnType<ReturnType<typeof socketPipe>>>((resolve) => {
    const opened = socketPipe({ place: { host: '127.0.0.1', port } })({
      onOpen: () => resolve(opened),
      onData() {},
      onEnd() {},
    })
  })
  if (accepted.length === 0) await once(server, 'connection')
  return { close: () => pipe.close(), peer: accepted[0]! }
}

test('closing does not reset the connection of a server that is still writing', async () => {
  const { close, peer } = await open()
  const errors: unknown[] = []
  peer.on('error', (error) => errors.push(error)).resume()
  close()
  await once(peer, 'end')
  for (let count = 0; count < 3; count++) await new Promise((resolve) => peer.write('late', resolve))
  peer.end()
  await once(peer, 'close')
  expect(errors).toEqual([])
})

test('a server that never closes its side is disconnected', async () => {
  const { close, peer } = await open()
  close()
  peer.on('error', () => {}).resume()
  await once(peer, 'end')
  // A write to a closed connection fails; the test does not assert how soon.
  const writing = setInterval(() => peer.write('still there?'), 50)
  await new Promise((resolve) => peer.on('close', resolve))
  clearInterval(writing)
  expect(peer.destroyed).toBe(true)
})
