import { appendFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type RedisServer, scale, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { AofTail, type Change, parseManifest } from '@firebreak/watch'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, test } from 'vitest'

let tail: AofTail
let changes: Change[] = []
const problems: Error[] = []

function follow(folder: string): AofTail {
  changes = []
  const onChange = (change: Change) => void changes.push(change)
  tail = new AofTail({ folder }, { onChange, onProblem: (problem) => problems.push(problem) })
  tail.start()
  return tail
}

const live = () => waitFor(() => tail.state.kind === 'live', { what: () => `a live tail: ${problems.at(-1)?.message}` })
const flushes = () => changes.filter(({ kind }) => kind === 'flush')
const keys = () => changes.flatMap((change) => (change.kind === 'keys' ? change.keys.map(({ key }) => key) : []))

afterEach(async () => {
  await tail?.close()
})

describe('the AOF of a real Redis 7', () => {
  test('reports every write once, across rewrites of the file', async () => {
    const server = await startRedis({ args: ['--appendonly', 'yes', '--aof-timestamp-enabled', 'yes'] })
    const writer = new Redis(server.port)
    const writes = scale(8000, 40_000)
    await writer.set('before', '1')
    follow(server.folder)
    await live()
    for (let round = 0; round < 4; round++) {
      const rewrite = writer.bgrewriteaof()
      for (let index = 0; index < writes / 4; index += 50) {
        await Promise.all(Array.from({ length: 50 }, (_, offset) => writer.set(`k${round}-${index + offset}`, 'v')))
      }
      await rewrite
      await waitFor(async () => (await writer.info('persistence')).includes('aof_rewrite_in_progress:0'))
    }
    await waitFor(() => new Set(keys()).size === writes, {
      timeoutMs: 30_000,
      what: () => `${writes} keys; seen ${new Set(keys()).size}, ${problems.at(-1)?.message}`,
    })
    expect(keys()).toHaveLength(writes)
    expect(flushes()).toHaveLength(1)
    writer.disconnect()
    await server.stop()
  })

  test('continues after the server is killed and restarted', async () => {
    let server: RedisServer = await startRedis({ args: ['--appendonly', 'yes'] })
    const writer = new Redis(server.port, { maxRetriesPerRequest: null })
    writer.on('error', () => {})
    await writer.set('before', '1')
    follow(server.folder)
    await live()
    await writer.select(5)
    await writer.set('a', '1')
    await waitFor(() => keys().includes('a'))
    expect(changes.at(-1)?.database).toBe(5)
    server.child.signal('SIGKILL')
    await server.child.exited
    server = await server.restart()
    await writer.set('b', '1')
    await waitFor(() => keys().includes('b'))
    writer.disconnect()
    await server.stop()
  })
})

describe('the one file of an older server', () => {
  const command = (...args: string[]) =>
    `*${args.length}\r\n${args.map((arg) => `$${arg.length}\r\n${arg}\r\n`).join('')}`

  test('is followed from its end, past an RDB at its head; a rewrite and a truncation are flushes', async () => {
    const folder = temporaryFolder('aof')
    const file = join(folder, 'appendonly.aof')
    writeFileSync(
      file,
      Buffer.concat([Buffer.from('REDIS0009\xfa\x00junk\xff', 'latin1'), Buffer.from(command('SET', 'old', '1'))]),
    )
    follow(folder)
    await live()
    appendFileSync(file, command('SELECT', '0') + command('SET', 'a', '1'))
    await waitFor(() => keys().includes('a'))
    expect(keys()).toEqual(['a'])
    writeFileSync(join(folder, 'new.aof'), command('SET', 'a', '1'))
    renameSync(join(folder, 'new.aof'), file)
    await waitFor(() => flushes().length === 2)
    appendFileSync(file, command('SET', 'b', '1'))
    await waitFor(() => keys().includes('b'))
    truncateSync(file, 5)
    await waitFor(() => flushes().length >= 3)
  })

  test('half a command that is cut off and written again is reported once', async () => {
    const folder = temporaryFolder('aof')
    const file = join(folder, 'appendonly.aof')
    writeFileSync(file, '')
    follow(folder)
    await live()
    const whole = command('SET', 'a', 'x'.repeat(1000))
    appendFileSync(file, whole.slice(0, 500))
    appendFileSync(file, whole.slice(500) + whole.slice(0, 300))
    await waitFor(() => keys().length === 1)
    truncateSync(file, whole.length)
    appendFileSync(file, command('SET', 'b', '1'))
    await waitFor(() => keys().includes('b'))
    expect(keys()).toEqual(['a', 'b'])
    expect(flushes()).toHaveLength(1)
  })
})

test('a missing file is reported, and the tail waits for it', async () => {
  const folder = temporaryFolder('aof')
  follow(folder)
  await waitFor(() => tail.state.kind === 'connecting' && tail.state.reason.includes('no append-only file'))
  writeFileSync(join(folder, 'appendonly.aof'), '')
  await live()
})

test('a manifest is read with quoted names, or refused with its line', () => {
  expect(parseManifest('file a.1.base.rdb seq 1 type b\nfile "a b.1.incr.aof" seq 2 type i\n')).toEqual([
    { file: 'a.1.base.rdb', sequence: 1, type: 'b' },
    { file: 'a b.1.incr.aof', sequence: 2, type: 'i' },
  ])
  expect(() => parseManifest('file x seq 1 type b\nnonsense')).toThrow(/line 2/)
})
