import { LockReporter, Locks } from '@firebreak/locks'
import { FakeClock, type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import fastify, { type FastifyInstance } from 'fastify'
import { Redis as Ioredis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { LockInstance, LockOverview, LockTotals } from './lock-board.ts'
import { type LockRoutesOptions, lockRoutes } from './lock-routes.ts'

interface Answer {
  readonly locks: LockOverview[]
  readonly lockCount: number
  readonly instances: LockInstance[]
  readonly totals: LockTotals
  readonly refusedReports: number
}

let server: RedisServer
let client: Ioredis
beforeAll(async () => {
  server = await startRedis()
  client = new Ioredis(server.port)
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

async function openHub(options: LockRoutesOptions = {}) {
  const clock = new FakeClock()
  const app: FastifyInstance = fastify()
  await app.register(lockRoutes, { clock, ...options })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const get = async (query = '') => (await (await fetch(`${url}/v1/locks${query}`)).json()) as Answer
  return { app, clock, url, get }
}

describe('locks in the hub', () => {
  test('shows who holds and who waits, over processes, the most waited for first', async () => {
    const { app, url, get } = await openHub()
    const processes = [new Locks(client), new Locks(client)]
    const reporters = processes.map(
      (locks, index) =>
        new LockReporter(locks, { hubUrl: url, serviceId: 'orders', hostId: `host ${index}`, everyMs: 60_000 }),
    )
    const [a, b] = processes as [Locks, Locks]
    await a.getLock('calm').lock()
    const held = await a.getFairLock('busy').lock()
    const waiting = b.getFairLock('busy').lock()
    await waitFor(() => b.snapshot().waitingCount === 1)
    for (const reporter of reporters) await reporter.report()
    const answer = await get()
    expect(answer.locks.map(({ name }) => name)).toEqual(['busy', 'calm'])
    expect(answer.locks[0]).toMatchObject({
      kind: 'fair',
      holders: [{ serviceId: 'orders', hostId: 'host 0', owner: held.owner, token: held.token, holdCount: 1 }],
      waiters: [{ hostId: 'host 1', instanceId: b.instanceId }],
    })
    expect(answer.totals).toMatchObject({ held: 2, waiting: 1, acquired: 2 })
    expect(answer.instances).toHaveLength(2)
    expect((await get('?prefix=ca')).locks.map(({ name }) => name)).toEqual(['calm'])

    await held.unlock()
    await (await waiting).unlock()
    for (const reporter of reporters) await reporter.report()
    const later = await get()
    expect(later.locks.map(({ name }) => name)).toEqual(['calm'])
    expect(later.totals).toMatchObject({ held: 1, waiting: 0, acquired: 3, contended: 1 })
    expect(reporters.map(({ sent, failed }) => [sent, failed])).toEqual([
      [2, 0],
      [2, 0],
    ])
    for (const reporter of reporters) reporter.stop()
    await Promise.all(processes.map((locks) => locks.close()))
    await app.close()
  })

  test('forgets a process that stopped reporting', async () => {
    const { app, clock, url, get } = await openHub()
    const locks = new Locks(client)
    const reporter = new LockReporter(locks, { hubUrl: url, serviceId: 'orders', everyMs: 1000 })
    await locks.getLock('forgotten').lock()
    await reporter.report()
    clock.advance(2999)
    expect((await get()).lockCount).toBe(1)
    clock.advance(2)
    expect(await get()).toMatchObject({ locks: [], instances: [], totals: { held: 0 } })
    reporter.stop()
    await locks.close()
    await app.close()
  })

  test('asks the holder to release a lock, at its next report; the holder hears that it is lost', async () => {
    const audited: string[] = []
    const audit = async (who: string, what: string) => void audited.push(`${who}: ${what}`)
    const { app, url, get } = await openHub({ audit })
    const locks = new Locks(client)
    const reporter = new LockReporter(locks, { hubUrl: url, serviceId: 'orders', everyMs: 60_000 })
    const lost: string[] = []
    locks.onLost(({ name, reason }) => lost.push(`${name} ${reason}`))
    const handle = await locks.getLock('stuck').lock()
    await locks.getReadWriteLock('many').read.lock()
    const ask = async (body: object) => {
      const headers = { 'content-type': 'application/json' }
      return fetch(`${url}/v1/locks/release`, { method: 'POST', headers, body: JSON.stringify(body) })
    }
    await reporter.report()
    expect((await ask({ kind: 'read', name: 'many' })).status).toBe(400)
    expect((await ask({ kind: 'lock', name: 'other' })).status).toBe(404)
    const answer = await ask({ kind: 'lock', name: 'stuck' })
    expect(await answer.json()).toMatchObject({ asked: [{ serviceId: 'orders' }] })
    expect(audited).toEqual(['local: release lock stuck'])
    await reporter.report()
    expect(reporter.released).toBe(1)
    const other = new Locks(client)
    expect(await other.getLock('stuck').tryLock()).toBeDefined()
    expect(await handle.unlock()).toBe(false)
    expect(lost).toEqual(['stuck taken'])
    await reporter.report()
    expect(reporter.released).toBe(1)
    expect((await get()).locks.some(({ name }) => name === 'many')).toBe(true)
    reporter.stop()
    await locks.close()
    await other.close()
    await app.close()
  })

  test('refuses a report that does not parse and one process too many, and the reporter counts it', async () => {
    const { app, url, get } = await openHub({ maxInstances: 1 })
    const wrong = await fetch(`${url}/v1/locks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ version: 1, serviceId: '' }),
    })
    expect(wrong.status).toBe(400)
    expect(await wrong.json()).toMatchObject({
      code: 'FB_LOCK_REPORT_INVALID',
      message: expect.stringContaining('serviceId'),
    })
    const processes = [new Locks(client), new Locks(client)]
    const reporters = processes.map(
      (locks) => new LockReporter(locks, { hubUrl: url, serviceId: 's', everyMs: 60_000 }),
    )
    for (const reporter of reporters) await reporter.report()
    expect(reporters.map(({ sent, failed }) => [sent, failed])).toEqual([
      [1, 0],
      [0, 1],
    ])
    expect(await get()).toMatchObject({ refusedReports: 1, instances: [{ instanceId: processes[0]!.instanceId }] })
    await app.close()
    await reporters[0]!.report()
    expect(reporters[0]!.failed).toBe(1)
    for (const reporter of reporters) reporter.stop()
    await Promise.all(processes.map((locks) => locks.close()))
  })
})
