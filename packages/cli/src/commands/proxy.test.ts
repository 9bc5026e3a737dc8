import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import type { CommandIo } from '../command/command.ts'
import { proxy, proxyOptionsOf } from './proxy.ts'

const { stderr } = process

test('flags win over their env twins, and what is not given is left to the defaults', () => {
  const env = {
    FIREBREAK_PROXY_PORT: '7000',
    FIREBREAK_PROXY_WORKERS: '2',
    REDIS_URL: 'redis://r:1',
    FIREBREAK_HUB: 'http://h',
    FIREBREAK_PROXY_CLUSTER_ID: 'main',
    FIREBREAK_PROXY_SERVICE: 'other',
  }
  const options = proxyOptionsOf(['--port', '7001', '--user', 'a:b:c', '--service', 'shop'], { env, stderr })
  expect(options).toEqual({
    upstream: 'redis://r:1',
    port: 7001,
    workers: 2,
    users: [{ name: 'a', password: 'b:c' }],
    shield: { hubs: ['http://h'], serviceId: 'shop', redisClusterId: 'main' },
  })
})

test('users, a line each, and the cluster of one have env twins too', () => {
  const env = { FIREBREAK_PROXY_USER: 'a:1\nb:2:3\n', FIREBREAK_PROXY_AS_CLUSTER: 'true' }
  expect(proxyOptionsOf([], { env, stderr })).toMatchObject({
    users: [
      { name: 'a', password: '1' },
      { name: 'b', password: '2:3' },
    ],
    asCluster: true,
  })
  expect(proxyOptionsOf(['--user', 'c:4'], { env, stderr }).users).toEqual([{ name: 'c', password: '4' }])
  const other = { ...env, FIREBREAK_PROXY_AS_CLUSTER: 'yes' }
  expect(() => proxyOptionsOf([], { env: other, stderr })).toThrow('FIREBREAK_PROXY_AS_CLUSTER is "yes"')
})

test('the bounds of waiting and of unread output have flags', () => {
  const words = [
    '--max-output-bytes',
    '1',
    '--max-total-output-bytes',
    '2',
    '--slow-reader-ms',
    '3',
    '--connect-wait-ms',
    '4',
    '--retry-for-ms',
    '5',
    '--drain-ms',
    '0',
  ]
  expect(proxyOptionsOf(words, { env: {}, stderr })).toMatchObject({
    maxOutputBytes: 1,
    maxTotalOutputBytes: 2,
    slowReaderMs: 3,
    connectWaitMs: 4,
    retryForMs: 5,
    drainMs: 0,
  })
})

test('metrics are served where a port is given', () => {
  const env = { FIREBREAK_PROXY_METRICS_HOST: '0.0.0.0' }
  const options = proxyOptionsOf(['--metrics-port', '9100'], { env, stderr })
  expect(options).toMatchObject({ metricsPort: 9100, metricsHost: '0.0.0.0' })
})

test("metrics are pushed where the flag says, its env twin or OpenTelemetry's own variables", () => {
  const otlpOf = (words: readonly string[], env: Record<string, string>) => proxyOptionsOf(words, { env, stderr }).otlp
  const shared = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://shared:4318', OTEL_SERVICE_NAME: 'edge' }
  expect(otlpOf([], {})).toBeUndefined()
  expect(otlpOf([], shared)).toEqual({ endpoint: 'http://shared:4318/v1/metrics', serviceName: 'edge' })
  const own = { ...shared, FIREBREAK_PROXY_OTLP_ENDPOINT: 'http://own:4318' }
  expect(otlpOf([], own)).toEqual({ endpoint: 'http://own:4318', serviceName: 'edge' })
  expect(otlpOf(['--otlp-endpoint', 'http://flag'], own)).toEqual({ endpoint: 'http://flag', serviceName: 'edge' })
  expect(otlpOf(['--otlp-endpoint', 'http://flag'], { OTEL_SDK_DISABLED: 'true' })).toBeUndefined()
})

test('an address to announce is a host and a port', () => {
  const announced = (announce: string) => proxyOptionsOf(['--announce', announce], { env: {}, stderr }).announce
  expect(announced('redis.example:7000')).toEqual({ host: 'redis.example', port: 7000 })
  expect(announced('[fd00::1]:7000')).toEqual({ host: 'fd00::1', port: 7000 })
  for (const wrong of ['redis.example', '10.0.0.1:', ':7000', 'fd00::1:7000', 'h:0', 'h:70000'])
    expect(() => announced(wrong)).toThrow('it must be HOST:PORT')
})

test.each([[['--port', 'x']], [['--mode', 'many']], [['--tls-cert', import.meta.filename]], [['--user', 'nobody']]])(
  '%o is refused',
  (words) => {
    expect(() => proxyOptionsOf(words, { env: {}, stderr })).toThrow(/--/)
  },
)

test('it serves until it is told to end', async () => {
  const server = await startRedis()
  const ending = new AbortController()
  let printed = ''
  const io = {
    env: {},
    stdout: { write: (text: string) => (printed += text) },
    signal: ending.signal,
  } as unknown as CommandIo
  const done = proxy.run(['--upstream', server.url, '--port', '0'], io)
  const port = await waitFor(() => /listens on 127\.0\.0\.1:(\d+)/.exec(printed)?.[1])
  const { connect } = await import('node:net')
  const socket = connect(Number(port), '127.0.0.1', () => socket.write('PING\r\n'))
  expect(String(await new Promise((resolve) => socket.once('data', resolve)))).toBe('+PONG\r\n')
  socket.destroy()
  ending.abort()
  expect(await done).toBe(0)
  await server.stop()
})

test('how a lost watcher is retried is a flag, a variable and a setting, and a wrong one is refused', () => {
  const { stderr } = process
  const retry = { tracking: { tries: 50, atEnd: 'stop' } }
  const words = ['--hub', 'http://hub:7070', '--retry', 'tracking tries=50 atEnd=stop']
  expect(proxyOptionsOf(words, { env: {}, stderr }).shield).toMatchObject({ retry })
  const env = { FIREBREAK_HUB: 'http://hub:7070', FIREBREAK_RETRY: 'tracking tries=50 atEnd=stop' }
  expect(proxyOptionsOf([], { env, stderr }).shield).toMatchObject({ retry })
  expect(proxyOptionsOf(words.slice(0, 2), { env: {}, stderr }).shield).not.toHaveProperty('retry')
  for (const line of ['tracking atEnd=drop', 'traking tries=5', 'tracking tries=-1'])
    expect(() => proxyOptionsOf([...words.slice(0, 3), line], { env: {}, stderr })).toThrow(/retry/)
})

test('an address is warned of only where it holds a password', () => {
  const said = (upstream: string) => {
    let text = ''
    const io = { env: {}, stderr: { write: (line: string) => (text += line) !== '' } as never }
    proxyOptionsOf(['--upstream', upstream], io)
    return text
  }
  for (const address of [
    '10.0.0.5:6379',
    'redis://app@10.0.0.1:7000,10.0.0.2:7000/0',
    'unix:///var/run/redis/redis-server.sock',
  ])
    expect(said(address)).toBe('')
  for (const address of [
    'redis://:se/cret@10.0.0.5:6379',
    'app:secret@10.0.0.5:6379',
    'unix://:secret@/run/redis.sock',
  ])
    expect(said(address)).toContain('--upstream is visible to every user of this machine (ps)')
})

test('a token in a file stays there, so that the proxy can read a rotated one', () => {
  const file = join(temporaryFolder('proxy-token'), 'token')
  writeFileSync(file, 'app-token-0123456789\n', { mode: 0o600 })
  const shield = (env: Record<string, string>) =>
    proxyOptionsOf(['--hub', 'http://127.0.0.1:7070'], { env, stderr: process.stderr }).shield
  for (const variable of ['FIREBREAK_TOKEN_FILE', 'FIREBREAK_PROXY_TOKEN_FILE']) {
    expect(shield({ [variable]: file })).toEqual({ hubs: ['http://127.0.0.1:7070'], tokenFile: file })
  }
  expect(shield({ FIREBREAK_TOKEN: 'app-token' })).toMatchObject({ token: 'app-token' })
})
