import { systemTimers, type Timers } from '@firebreak/core'
import { type MariadbServer, scale, startMariadb, waitFor } from '@firebreak/testkit'
import {
  BinlogSource,
  type BinlogSourceOptions,
  type KeyRefresh,
  parseRowMapping,
  sourceRetrySteps,
} from '@firebreak/watch'
import { createConnection } from 'mysql2/promise'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

const args = ['--log-bin=binlog', '--binlog-format=ROW', '--server-id=1', '--max-binlog-size=4096']
let server: MariadbServer
let source: BinlogSource
let refreshes: KeyRefresh[] = []
let flushes: string[] = []
let problems: Error[] = []
let checkpoint: string | undefined

const mapping = parseRowMapping({
  tables: {
    'test.product': [
      { key: 'product:{id}', value: { json: ['id', 'name', 'big'] } },
      { key: 'price:{id}', value: { column: 'price' }, ttlSeconds: 60 },
      { key: 'page:{id}', value: { loader: 'page' } },
    ],
  },
})

function follow(options: Partial<BinlogSourceOptions> = {}): void {
  source = new BinlogSource(
    {
      connection: { host: server.host, port: server.port, user: server.user, database: server.database },
      mapping,
      checkpoint: {
        load: async () => checkpoint,
        save: async (gtid) => {
          checkpoint = gtid
        },
      },
      retry: { ...sourceRetrySteps.binlog.policy, firstMs: 20, mostMs: 200 },
      applyRetry: { ...sourceRetrySteps.redis.policy, firstMs: 20, mostMs: 200 },
      pollMs: 100,
      silenceMs: 1000,
      ...options,
    },
    {
      onRefreshes: async (some) => void refreshes.push(...some),
      onFlush: async (tables, reason) => void flushes.push(`${tables} ${reason}`),
      onProblem: (problem) => problems.push(problem),
    },
  )
  source.start()
}

const live = () =>
  waitFor(() => source.state.kind === 'live', {
    timeoutMs: 30_000,
    what: () => `a live binlog; ${problems.at(-1)?.message}`,
  })
const keys = (kind: KeyRefresh['kind'] = 'set') =>
  refreshes.filter((refresh) => refresh.kind === kind).map(({ key }) => key)
const has = (key: string) =>
  waitFor(() => keys().includes(key), { timeoutMs: 30_000, what: () => `${key}; ${problems.at(-1)?.message}` })

async function killDumps(): Promise<void> {
  const ids = await server.sql("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
  for (const id of ids.split('\n').filter((line) => line !== '')) await server.sql(`KILL ${id}`).catch(() => {})
}

beforeAll(async () => {
  server = await startMariadb({ args })
  await server.sql('CREATE TABLE product (id INT PRIMARY KEY, name VARCHAR(40), price DECIMAL(8,2), big BIGINT)')
})
beforeEach(async () => {
  refreshes = []
  flushes = []
  problems = []
  checkpoint = undefined
})
afterEach(async () => {
  await source.close()
  await server.sql('DELETE FROM product')
})
afterAll(() => server.stop())

describe('rows become keys', () => {
  test('an insert, an update and a delete refresh the mapped keys, large integers exact', async () => {
    follow()
    await live()
    await server.sql("INSERT INTO product VALUES (1, 'tea', 3.50, 9007199254740993)")
    await server.sql(
      'UPDATE product SET price = 4 WHERE id = 1; UPDATE product SET id = 2 WHERE id = 1; DELETE FROM product WHERE id = 2',
    )
    await waitFor(() => keys('gone').includes('page:2'))
    expect(refreshes[0]).toEqual({
      kind: 'set',
      key: 'product:1',
      value: '{"id":1,"name":"tea","big":"9007199254740993"}',
      ttlSeconds: undefined,
    })
    expect(refreshes[1]).toEqual({ kind: 'set', key: 'price:1', value: '3.50', ttlSeconds: 60 })
    expect(refreshes[2]).toMatchObject({ kind: 'load', key: 'page:1', loader: 'page', row: { id: 1 } })
    expect(refreshes[4]).toMatchObject({ key: 'price:1', value: '4.00' })
    expect(keys('gone')).toEqual(['product:1', 'price:1', 'page:1', 'product:2', 'price:2', 'page:2'])
  })

  test('TRUNCATE flushes the keys of the table, and a changed schema is followed', async () => {
    follow()
    await live()
    await server.sql("INSERT INTO product VALUES (5, 'tea', 1, 1); TRUNCATE TABLE product")
    await waitFor(() => flushes.some((flush) => flush.includes('TRUNCATE')))
    await server.sql(
      "ALTER TABLE product ADD COLUMN note VARCHAR(10) FIRST; INSERT INTO product VALUES ('n', 6, 'mug', 2, 2)",
    )
    await has('product:6')
    expect(refreshes.find(({ key }) => key === 'price:6')).toMatchObject({ value: '2.00' })
    await server.sql('ALTER TABLE product DROP COLUMN note')
  })

  test('a row that the mapping cannot handle is reported, and the next one is still processed', async () => {
    follow({
      mapping: parseRowMapping({ tables: { 'test.product': [{ key: 'x:{nothing}', value: { column: 'id' } }] } }),
    })
    await live()
    await server.sql("INSERT INTO product VALUES (7, 'tea', 1, 1)")
    await waitFor(() => problems.some(({ message }) => message.includes('no column nothing')))
    expect(source.state.kind).toBe('live')
  })
})

describe('nothing is missed', () => {
  test('across killed connections, rotations of the log and a killed server', async () => {
    follow()
    await live()
    const rounds = scale(4, 20)
    for (let round = 0; round < rounds; round++) {
      const values = Array.from({ length: 20 }, (_, index) => `(${1000 + round * 20 + index}, 'x', 1, 1)`)
      await server.sql(`INSERT INTO product VALUES ${values.join(',')}; FLUSH BINARY LOGS`)
      await killDumps()
      if (round === 1) {
        server.child.signal('SIGKILL')
        await server.child.exited
        server = await server.restart()
      }
    }
    await waitFor(() => new Set(keys().filter((key) => key.startsWith('product:'))).size >= rounds * 20, {
      timeoutMs: 60_000,
      what: () => `all rows; seen ${new Set(keys()).size}; ${problems.at(-1)?.message}`,
    })
    expect(flushes).toHaveLength(1)
  })

  test('after a time offline it resumes from its checkpoint', async () => {
    follow()
    await live()
    await server.sql("INSERT INTO product VALUES (21, 'a', 1, 1)")
    await has('product:21')
    await waitFor(() => checkpoint !== undefined && source.checkpoint === checkpoint)
    await source.close()
    await server.sql("INSERT INTO product VALUES (22, 'b', 1, 1)")
    refreshes = []
    flushes = []
    follow()
    await has('product:22')
    expect(flushes).toEqual([])
    expect(keys()).not.toContain('product:21')
  })

  test('pauses between the tries of a transaction grow even though the log is readable each time', async () => {
    const pauses: number[] = []
    const timers: Timers = {
      ...systemTimers,
      setTimeout(run, ms) {
        pauses.push(ms)
        return systemTimers.setTimeout(run, ms)
      },
    }
    let failures = 4
    source = new BinlogSource(
      {
        connection: { host: server.host, port: server.port, user: server.user, database: server.database },
        mapping,
        checkpoint: { load: async () => checkpoint, save: async (gtid) => void (checkpoint = gtid) },
        applyRetry: { ...sourceRetrySteps.redis.policy, firstMs: 5 },
        timers,
        random: () => 1,
      },
      {
        async onRefreshes(some) {
          if (failures-- > 0) throw new Error('Redis is away')
          refreshes.push(...some)
        },
        async onFlush() {},
      },
    )
    source.start()
    await live()
    await server.sql("INSERT INTO product VALUES (30, 'a', 1, 1)")
    await has('product:30')
    expect(pauses).toEqual([5, 10, 20, 40])
  })

  test('a failed refresh is repeated before the checkpoint moves', async () => {
    let failures = 2
    source = new BinlogSource(
      {
        connection: { host: server.host, port: server.port, user: server.user, database: server.database },
        mapping,
        checkpoint: { load: async () => checkpoint, save: async (gtid) => void (checkpoint = gtid) },
        retry: { ...sourceRetrySteps.binlog.policy, firstMs: 10, mostMs: 50 },
        applyRetry: { ...sourceRetrySteps.redis.policy, firstMs: 10, mostMs: 50 },
      },
      {
        async onRefreshes(some) {
          if (failures-- > 0) throw new Error('Redis is away')
          refreshes.push(...some)
        },
        onFlush: async () => {},
        onProblem: (problem) => problems.push(problem),
      },
    )
    source.start()
    await live()
    await server.sql("INSERT INTO product VALUES (31, 'a', 1, 1)")
    await has('product:31')
    expect(problems.some(({ message }) => message.includes('Redis is away'))).toBe(true)
  })

  test('a paused server is noticed and abandoned, and read again when it resumes', async () => {
    follow()
    await live()
    server.child.signal('SIGSTOP')
    await waitFor(() => source.state.kind === 'connecting', { timeoutMs: 30_000 })
    server.child.signal('SIGCONT')
    await live()
    await server.sql("INSERT INTO product VALUES (41, 'a', 1, 1)")
    await has('product:41')
  })

  test('a purged log causes a flush and an alarm, and reading continues', async () => {
    follow()
    await live()
    await server.sql("INSERT INTO product VALUES (51, 'a', 1, 1)")
    await has('product:51')
    await source.close()
    flushes = []
    await server.sql(
      "INSERT INTO product VALUES (52, 'b', 1, 1); FLUSH BINARY LOGS; INSERT INTO product VALUES (53, 'b', 1, 1); FLUSH BINARY LOGS",
    )
    const last = (await server.sql('SHOW MASTER STATUS')).split('\t')[0]!
    // A log that a connection still reads is not purged; ours is gone, but the server notices only when it writes to it.
    await waitFor(async () => {
      await killDumps()
      await server.sql(`PURGE BINARY LOGS TO '${last}'`)
      return (await server.sql('SHOW BINARY LOGS')).split('\n').length === 1
    })
    follow()
    await waitFor(() => flushes.some((flush) => flush.includes('purged')), {
      timeoutMs: 30_000,
      what: () => `a flush; ${problems.at(-1)?.message}`,
    })
    expect(problems.length).toBeGreaterThan(0)
    await live()
    await server.sql("INSERT INTO product VALUES (54, 'c', 1, 1)")
    await has('product:54')
  })
})

test('a commit reaches the listener within a few milliseconds, most of the time', async () => {
  follow()
  await live()
  const client = await createConnection({
    host: server.host,
    port: server.port,
    user: server.user,
    database: server.database,
  })
  const times: number[] = []
  for (let id = 100; id < 150; id++) {
    await client.query(`INSERT INTO product VALUES (${id}, 'a', 1, 1)`)
    const committed = performance.now()
    await waitFor(() => keys().includes(`product:${id}`), { everyMs: 1 })
    times.push(performance.now() - committed)
  }
  client.destroy()
  // A source that polled, or waited for the next transaction, would take far longer.
  expect(times.sort((a, b) => a - b)[25]).toBeLessThan(100)
})

test('an invalid mapping is refused with the name of the field', () => {
  const wrong = (input: unknown) => () => parseRowMapping(input)
  expect(wrong({ table: {} })).toThrow(/did you mean tables/)
  expect(wrong({ tables: { product: [] } })).toThrow(/schema\.table/)
  expect(wrong({ tables: { 'a.b': [{ key: 'fixed', value: { column: 'x' } }] } })).toThrow(/a\.b\[0\]\.key/)
  expect(wrong({ tables: { 'a.b': [{ key: '{id}', value: 'delete' }] } })).toThrow(/refreshed, never deleted/)
  expect(wrong({ tables: { 'a.b': [{ key: '{id}', value: { colum: 'x' } }] } })).toThrow(/did you mean column/)
})
