import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { freePort, type RedisServer, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RespConnection } from '../connection/resp-connection.ts'
import { encodeCommand } from '../resp/encode-command.ts'
import { ErrorReply, type RespValue } from '../resp/value.ts'
import { systemRuntime } from '../time/runtime.ts'
import { nodePipe } from './node-pipe.ts'
import { openRespClient } from './open-resp-client.ts'

let server: RedisServer
const socketPath = join(temporaryFolder('socket'), 's')

beforeAll(async () => {
  server = await startRedis({ args: ['--unixsocket', socketPath] })
  await server.cli('ACL', 'SETUSER', 'alice', 'on', '>secret', '~*', '&*', '+@all')
})
afterAll(() => server.stop())

const text = (reply: RespValue) => Buffer.from(reply as Uint8Array).toString()

test('commands are answered in order, errors reject, and replies come as bytes or text as requested', async () => {
  const client = await openRespClient({ port: server.port }, { name: 'contract' })
  const key = Buffer.from([0, 255, 13, 10])
  expect(await Promise.all([client.send(['SET', key, key]), client.send(['GET', key])])).toEqual([
    'OK',
    new Uint8Array(key),
  ])
  await expect(client.send(['LPUSH', key, 'x'])).rejects.toMatchObject({ code: 'FB_REDIS_REPLY', kind: 'WRONGTYPE' })
  const commands = Buffer.concat([encodeCommand(['ECHO', 'a']), encodeCommand(['NONE']), encodeCommand(['ECHO', 'b'])])
  const seen: unknown[] = []
  await client.batch(commands, 3, (reply, index) =>
    seen.push([index, reply instanceof ErrorReply ? reply.kind : text(reply)]),
  )
  expect(seen).toEqual([
    [0, 'a'],
    [1, 'ERR'],
    [2, 'b'],
  ])
  expect(Buffer.from(await client.ask(encodeCommand(['ECHO', 'raw']))).toString()).toBe('$3\r\nraw\r\n')
  expect(text(await client.send(['CLIENT', 'GETNAME']))).toBe('contract')
  client.close()
  await expect(client.send(['PING'])).rejects.toMatchObject({ code: 'FB_REDIS_CLOSED' })
  const texts = await openRespClient({ port: server.port }, { bulk: 'text' })
  expect(await texts.send(['ECHO', 'text'])).toBe('text')
  texts.close()
})

test('a Unix socket, a user with a password, a database', async () => {
  const client = await openRespClient({ socketPath, username: 'alice', password: 'secret', database: 5 })
  expect(text(await client.send(['CLIENT', 'INFO']))).toMatch(/ db=5 .* user=alice /)
  client.close()
  for (const version of [2, 3] as const) {
    const target = { port: server.port, username: 'alice', password: 'wrong-word' }
    const refused = (await openRespClient(target, { version }).catch((error) => error)) as Error
    expect(refused).toMatchObject({ code: 'FB_REDIS_REPLY', kind: 'WRONGPASS' })
    expect(refused.message).not.toMatch(/wrong-word/)
  }
  await expect(openRespClient({ port: server.port, database: 99 })).rejects.toThrow(/SELECT with: ERR DB index/)
})

test('without a required password: RESP3 is refused at once, RESP2 at the first command', async () => {
  const locked = await startRedis({ args: ['--requirepass', 'pw'] })
  const { port } = locked
  await expect(openRespClient({ port }, { version: 3 })).rejects.toMatchObject({ kind: 'NOAUTH' })
  const client = await openRespClient({ port })
  await expect(client.send(['PING'])).rejects.toMatchObject({ kind: 'NOAUTH' })
  client.close()
  const known = await openRespClient({ port, password: 'pw', database: 2 }, { version: 3 })
  expect(await known.send(['PING'])).toBe('PONG')
  known.close()
  await locked.stop()
})

test('pushes arrive between the replies around them', async () => {
  await server.cli('SET', 'tracked', '1')
  const order: string[] = []
  const connection = new RespConnection(nodePipe({ port: server.port }), {
    address: 'it',
    runtime: systemRuntime,
    onPush: () => order.push('push'),
  })
  const script = [['HELLO', '3'], ['CLIENT', 'TRACKING', 'ON'], ['GET', 'tracked'], ['SET', 'tracked', '3'], ['PING']]
  await new Promise<void>((resolve) => {
    connection.send(Buffer.concat(script.map((args) => encodeCommand(args))), script.length, (_, index) => {
      order.push(script[index]![0]!)
      if (index === script.length - 1) resolve()
    })
  })
  connection.close()
  expect(order).toEqual(['HELLO', 'CLIENT', 'GET', 'SET', 'push', 'PING'])
})

test('a server that refuses HELLO is used with RESP2, as the same user', async () => {
  const old = await startRedis({ args: ['--rename-command', 'HELLO', '', '--requirepass', 'pw'] })
  const client = await openRespClient({ port: old.port, password: 'pw', database: 1 }, { version: 3 })
  // RESP3 would return a map.
  expect(await client.send(['CONFIG', 'GET', 'databases'])).toEqual([expect.anything(), expect.anything()])
  expect(text(await client.send(['CLIENT', 'LIST']))).toMatch(/ db=1 /)
  client.close()
  await expect(openRespClient({ port: old.port, password: 'no' }, { version: 3 })).rejects.toMatchObject({
    kind: 'WRONGPASS',
  })
  await old.stop()
})

test('TLS: a private CA, a missing CA, another name, no check', async () => {
  const folder = temporaryFolder('tls')
  const file = (name: string) => join(folder, name)
  const openssl = (line: string) => execFileSync('openssl', line.split(' '), { cwd: folder, stdio: 'ignore' })
  writeFileSync(file('names.cnf'), 'subjectAltName=DNS:redis.example,IP:127.0.0.1\n')
  openssl('req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=private-ca')
  openssl('req -newkey rsa:2048 -nodes -keyout key.pem -out request.pem -subj /CN=redis.example')
  openssl('x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile names.cnf')
  const port = await freePort()
  const certificates = ['cert', 'key', 'ca-cert'].flatMap((name, index) => [
    `--tls-${name}-file`,
    file(['cert.pem', 'key.pem', 'ca.pem'][index]!),
  ])
  const secure = await startRedis({ args: ['--tls-port', String(port), ...certificates, '--tls-auth-clients', 'no'] })
  const ca = readFileSync(file('ca.pem'), 'utf8')
  for (const tls of [{ ca }, { ca, serverName: 'redis.example' }, { isVerified: false }]) {
    const client = await openRespClient({ port, tls }, { version: 3 })
    expect(await client.send(['PING'])).toBe('PONG')
    client.close()
  }
  await expect(openRespClient({ port, tls: true })).rejects.toMatchObject({
    code: 'FB_REDIS_TLS',
    message: expect.stringMatching(/certificate/),
  })
  await expect(openRespClient({ port, tls: { ca, serverName: 'other' } })).rejects.toMatchObject({
    code: 'FB_REDIS_TLS',
  })
  // TLS to a plain port, and plain to a TLS port.
  await expect(openRespClient({ port: secure.port, tls: { ca }, connectTimeoutMs: 100 })).rejects.toMatchObject({
    code: 'FB_REDIS_TIMEOUT',
  })
  await expect(openRespClient({ port }, { version: 3 })).rejects.toMatchObject({ code: 'FB_REDIS_CLOSED' })
  await secure.stop()
})

test('no server, and a server that hangs', async () => {
  const port = await freePort()
  await expect(openRespClient({ port })).rejects.toMatchObject({
    code: 'FB_REDIS_CONNECT',
    message: expect.stringMatching(new RegExp(`^cannot connect to 127.0.0.1:${port}: .*ECONNREFUSED`)),
  })
  const sockets: Socket[] = []
  const mute = createServer((socket) => sockets.push(socket.on('error', () => {})))
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
  const target = { port: (mute.address() as { port: number }).port, connectTimeoutMs: 50 }
  await expect(openRespClient(target, { version: 3 })).rejects.toMatchObject({ code: 'FB_REDIS_TIMEOUT' })
  for (const socket of sockets) socket.destroy()
  mute.close()

  const client = await openRespClient({ port: server.port }, { replyTimeoutMs: 50 })
  const [slept, behind] = [client.send(['DEBUG', 'SLEEP', '0.4']), client.send(['PING'])]
  await expect(slept).rejects.toMatchObject({ code: 'FB_REDIS_TIMEOUT' })
  await expect(behind).rejects.toMatchObject({ code: 'FB_REDIS_TIMEOUT' })
  await expect(client.send(['PING'])).rejects.toMatchObject({ code: 'FB_REDIS_TIMEOUT' })
})

test('a server that is killed in the middle of a reply rejects what is unanswered, and earlier whole replies remain valid', async () => {
  const doomed = await startRedis()
  const client = await openRespClient({ port: doomed.port })
  await client.send(['SETRANGE', 'huge', 100_000_000, 'x'])
  // Do not read, so that the reply is still in the server when it dies.
  const [whole, broken, behind] = [client.send(['ECHO', 'a']), client.send(['GET', 'huge']), client.send(['PING'])]
  client.pause()
  await waitFor(async () => /name= .* omem=[1-9]\d{6,} /.test(await doomed.cli('CLIENT', 'LIST')), {
    what: 'the reply to wait in the server',
  })
  doomed.child.process.kill('SIGKILL')
  client.resume()
  expect(text(await whole)).toBe('a')
  await expect(broken).rejects.toMatchObject({ code: 'FB_REDIS_CLOSED' })
  await expect(behind).rejects.toMatchObject({ code: 'FB_REDIS_CLOSED' })
  await doomed.stop()
})
