import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { HistoryEvent, Overview } from '@firebreak/core'
import {
  type GuardedChild,
  type RedisServer,
  sourceArgs,
  startRedis,
  startSource,
  temporaryFolder,
  waitFor,
} from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))

interface AppStatus {
  readonly reads: number
  readonly errors: number
  readonly slowestMs: number
  readonly value: string | null
  readonly isLocal: boolean
  readonly isOff: boolean
  readonly isConnected: boolean
  readonly version: number
}

interface App {
  readonly child: ChildProcess
  status: AppStatus | undefined
}

let server: RedisServer
let writer: Redis
let hub: GuardedChild
let hubUrl: string
let folder: string
let apps: App[] = []

async function startHub(port = 0, ...further: string[]): Promise<void> {
  const args = ['hub', '--port', String(port), '--data-folder', folder, '--log-level', 'error', ...further]
  hub = startSource(main, args)
  hubUrl = (await hub.printed(/hub (http:\S+)/))[1]!
}

async function startApps(count: number, key: string): Promise<void> {
  for (let number = 0; number < count; number++) {
    const options = JSON.stringify({ redisUrl: server.url, hubUrl, key, number })
    const child = fork(fileURLToPath(new URL('./loop-app.ts', import.meta.url)), [options], {
      execArgv: [...sourceArgs],
    })
    const app: App = { child, status: undefined }
    child.on('message', (status) => {
      app.status = status as AppStatus
    })
    apps.push(app)
  }
}

const all = (what: string, condition: (status: AppStatus) => boolean) =>
  waitFor(() => apps.every(({ status }) => status !== undefined && condition(status)), {
    timeoutMs: 30_000,
    what: () => `every app: ${what}; ${JSON.stringify(apps.map(({ status }) => status))}`,
  })

/** Forgets earlier reports, and waits until every app has reported again. */
async function forget(): Promise<void> {
  for (const { child } of apps) child.send('forget')
  await all('a fresh count', ({ reads }) => reads > 0 && reads < 2000)
}

beforeEach(async () => {
  folder = temporaryFolder('loop')
  server = await startRedis()
  writer = new Redis(server.port, { maxRetriesPerRequest: null })
  writer.on('error', () => {})
  await startHub()
  const rule = { prefix: 'hot', threshold: 300, windowMs: 1000, strategy: 'LocalCache' }
  await fetch(`${hubUrl}/v1/rules/hot`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(rule),
  })
})
afterEach(async () => {
  for (const { child } of apps) child.kill('SIGKILL')
  apps = []
  writer.disconnect()
  await hub.stop()
  await server.stop()
})

describe('the loop on real processes', () => {
  test('a hub killed in the middle: no call fails or waits, and after its return the table is right', async () => {
    await writer.set('hot', '1')
    await startApps(3, 'hot')
    await all('local', ({ isLocal }) => isLocal)
    await forget()
    const port = Number(new URL(hubUrl).port)
    hub.signal('SIGKILL')
    await hub.exited
    await all('noticed it', ({ isConnected }) => !isConnected)
    await writer.set('hot', '2')
    await all('sees the write without a hub', ({ value }) => value === '2')
    await startHub(port)
    await all('connected again', ({ isConnected }) => isConnected)
    await all('hot and local', ({ isLocal }) => isLocal)
    for (const { status } of apps) {
      expect(status!.errors).toBe(0)
      // A read that waited for the dead hub would wait for a time-out of seconds.
      expect(status!.slowestMs).toBeLessThan(2000)
    }
    const overview = (await (await fetch(`${hubUrl}/v1/overview`)).json()) as Overview
    expect(overview.keys.find(({ key }) => key === 'hot')?.strategy?.strategy).toBe('LocalCache')
  })

  test('a process whose own count crosses a threshold acts long before its report is due, and the hub confirms it', async () => {
    await hub.stop()
    await startHub(0, '--report-interval-ms', '60000', '--max-report-interval-ms', '60000')
    await writer.set('hot', '1')
    await startApps(1, 'hot')
    // Within 30 s, or `all` gives up: without the fast path nothing would be reported for a minute.
    await all('local', ({ isLocal }) => isLocal)
    await waitFor(async () => {
      const { events } = (await (await fetch(`${hubUrl}/v1/history`)).json()) as { events: HistoryEvent[] }
      return events.some(({ kind, key }) => kind === 'hot' && key === 'hot')
    })
  })

  test('a Redis restarted without its data: nothing from before is served after the reconnect', async () => {
    await writer.set('hot', 'old')
    await startApps(2, 'hot')
    await all('local', ({ isLocal, value }) => isLocal && value === 'old')
    await server.child.stop(0)
    server = await server.restart()
    await all('no longer the old value', ({ value }) => value === null)
    await writer.set('hot', 'new')
    await all('the new one', ({ value }) => value === 'new')
    await all('local again', ({ isLocal, value }) => isLocal && value === 'new')
  })

  test('the kill switch turns protection off in a fleet of eight, and on again', async () => {
    await writer.set('hot', '1')
    await startApps(8, 'hot')
    await all('local', ({ isLocal }) => isLocal)
    const off = startSource(main, ['off', '--hub', hubUrl])
    expect(await off.exited).toBe(0)
    await all('plain', ({ isOff, isLocal }) => isOff && !isLocal)
    const on = startSource(main, ['on', '--hub', hubUrl])
    expect(await on.exited).toBe(0)
    await all('protected again', ({ isOff, isLocal }) => !isOff && isLocal)
  })

  test('the drill measures it: handled, Redis relieved, no stale read', async () => {
    const drill = startSource(main, [
      'drill',
      '--rounds',
      '1',
      '--clients',
      '3',
      '--threshold',
      '600',
      '--json',
      '--redis',
      server.url,
    ])
    await drill.exited
    const line = drill
      .output()
      .split('\n')
      .find((text) => text.startsWith('{'))
    const result = JSON.parse(line ?? '{}') as Record<string, number> & { effectiveMs: { max: number } }
    expect(result['rounds']).toBe(1)
    expect(result['highestAlone']).toBeLessThan(600)
    expect(result['redisShareAfter']).toBeLessThan(0.05)
    expect(result['staleReads']).toBe(0)
    expect(result['clientErrors']).toBe(0)
    expect(Number.isFinite(result.effectiveMs.max)).toBe(true)
  })
})
