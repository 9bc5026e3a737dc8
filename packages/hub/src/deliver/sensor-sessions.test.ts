import {
  decodeFrame,
  decodeJsonPayload,
  encodeBinaryReport,
  encodeFrame,
  encodeJsonFrame,
  type Frame,
  type HelloPayload,
} from '@firebreak/core'
import { expect, test } from 'vitest'
import { anyApp } from '../access/credential.ts'
import { ApiProblem } from '../errors.ts'
import { TestCore } from '../testing/test-core.ts'
import type { SensorChannel } from './sensor-channel.ts'

/** The sensor's end of a channel in memory. */
class MemoryChannel implements SensorChannel {
  readonly frames: Frame[] = []
  closed: readonly [code: number, reason: string] | undefined
  bufferedBytes = 0
  #onFrame: (frame: Uint8Array) => void = () => {}
  #onClose: () => void = () => {}

  /** While the other side reads nothing. */
  isStalled = false

  send(frame: Uint8Array): void {
    this.frames.push(decodeFrame(frame))
    if (this.isStalled) this.bufferedBytes += frame.length
  }

  onFrame(listener: (frame: Uint8Array) => void): void {
    this.#onFrame = listener
  }

  onClose(listener: () => void): void {
    this.#onClose = listener
  }

  close(code: number, reason: string): void {
    this.closed = [code, reason]
    this.#onClose()
  }

  say(frame: Uint8Array): void {
    this.#onFrame(frame)
  }

  types(): string[] {
    return this.frames.map(({ type }) => type)
  }
}

const rule = { id: 'r', prefix: 'k', threshold: 100 }
const ids = { serviceId: 'shop', hostId: 'h', instanceId: 'i' }
const hello = (now: number, token?: string): HelloPayload => ({
  ...ids,
  agent: 'test/1',
  redisClusterIds: ['main'],
  epoch: '',
  version: 0,
  sentAt: now,
  ...(token !== undefined && { token }),
})

test('a sensor lives on a channel of frames and the clock of the hub, without a socket', async () => {
  const hub = await TestCore.open([rule])
  const sessions = hub.core.sensorSessions()
  sessions.start()
  const channel = new MemoryChannel()
  sessions.open(channel)
  channel.say(encodeJsonFrame('hello', 0, hello(hub.clock.now())))
  expect(channel.types()).toEqual(['welcome', 'snapshot', 'heartbeat'])
  expect(hub.core.fleet.hosts.counts().connected).toBe(1)
  const now = hub.clock.now()
  const sections = [{ redisClusterId: 'main', entries: [{ key: 'k1', count: 200, writes: 0, bytes: 0 }] }]
  channel.say(encodeFrame('report', 1, encodeBinaryReport({ collectTs: now, sendTs: now, ...ids, sections })))
  const delta = channel.frames.at(-1)!
  expect(decodeJsonPayload<'delta'>(delta).set.map(({ key }) => key)).toEqual(['k1'])
  hub.core.lane.publish({ redisClusterId: 'main', database: 0, kind: 'flush', items: [] })
  expect(channel.types().at(-1)).toBe('invalidate')
  hub.clock.advance(3000)
  expect(channel.types().filter((type) => type === 'heartbeat')).toHaveLength(4)
  channel.close(1000, 'done')
  expect(hub.core.fleet.hosts.counts().connected).toBe(0)
  const told = channel.frames.length
  hub.clock.advance(3000)
  expect(channel.frames).toHaveLength(told)
})

/** A hub with a hot key for each of these names, whose processes are not the one that the test connects. */
async function hubWithTable(names: readonly string[]): Promise<TestCore> {
  const hub = await TestCore.open([rule], { maxReportBytes: 1 << 26 })
  const chunk = 20
  for (let from = 0; from < names.length; from += chunk) {
    const counts = Object.fromEntries(names.slice(from, from + chunk).map((name) => [name, 200]))
    hub.report(counts, { instanceId: 'other' })
  }
  return hub
}

const longNames = Array.from({ length: 70 }, (_, index) => `k${index}-${'x'.repeat(60_000)}`)
const maxFrame = 2 * 1024 * 1024
const snapshotsOf = ({ frames }: MemoryChannel) =>
  frames.filter(({ type }) => type === 'snapshot').map((frame) => decodeJsonPayload<'snapshot'>(frame))

test('a large table arrives in parts of bounded size where they are taken, and whole where not', async () => {
  const hub = await hubWithTable(longNames)
  const sessions = hub.core.sensorSessions()
  sessions.start()
  for (const takesParts of [true, false]) {
    const channel = new MemoryChannel()
    sessions.open(channel)
    channel.say(encodeJsonFrame('hello', 0, { ...hello(hub.clock.now()), takesParts }))
    const snapshots = snapshotsOf(channel)
    expect(snapshots.flatMap(({ entries }) => entries.map(({ key }) => key)).sort()).toEqual([...longNames].sort())
    expect(snapshots.map(({ hasMore }) => hasMore === true)).toEqual(
      snapshots.map((_, at) => at < snapshots.length - 1),
    )
    expect(new Set(snapshots.map(({ version }) => version)).size).toBe(1)
    const largest = Math.max(...channel.frames.map(({ bytes }) => bytes.length))
    if (takesParts) expect(largest).toBeLessThan(maxFrame)
    else expect(snapshots).toHaveLength(1)
    const before = snapshots.length
    channel.say(encodeJsonFrame('resync', 0, { reason: 'a gap' }))
    expect(snapshotsOf(channel)).toHaveLength(before * 2)
    channel.close(1000, 'done')
  }
  sessions.close()
})

test('a sensor that has not read its large table yet is not taken for slow; one that leaves more unread is', async () => {
  // Each `%` is three bytes in a frame.
  const hub = await hubWithTable(Array.from({ length: 55 }, (_, index) => `k${index}-${'%'.repeat(60_000)}`))
  const sessions = hub.core.sensorSessions()
  sessions.start()
  const channel = new MemoryChannel()
  channel.isStalled = true
  sessions.open(channel)
  channel.say(encodeJsonFrame('hello', 0, { ...hello(hub.clock.now()), takesParts: true }))
  expect(channel.bufferedBytes).toBeGreaterThan(9 * 1024 * 1024)
  hub.clock.advance(2500)
  expect([channel.closed, channel.types().at(-1)]).toEqual([undefined, 'heartbeat'])
  channel.bufferedBytes += 9 * 1024 * 1024
  hub.clock.advance(2500)
  expect(channel.closed).toEqual([4001, 'reads too slowly'])
  sessions.close()
})

test('who says nothing, has a wrong token, or does not read is let go with the reason', async () => {
  const hub = await TestCore.open([rule])
  const sessions = hub.core.sensorSessions()
  sessions.start()
  const [silent, wrong, early, slow] = [0, 1, 2, 3].map(() => new MemoryChannel()) as [
    MemoryChannel,
    MemoryChannel,
    MemoryChannel,
    MemoryChannel,
  ]
  sessions.open(silent)
  sessions.open(wrong, (token) => (token === 'secret' ? anyApp : new ApiProblem(401, 'FB_TOKEN_REFUSED', 'unknown')))
  wrong.say(encodeJsonFrame('hello', 0, hello(hub.clock.now(), 'guess')))
  expect([wrong.types(), wrong.closed]).toEqual([['refused'], [1008, 'app token refused']])
  sessions.open(early)
  early.say(encodeJsonFrame('hello', 0, hello(hub.clock.now())))
  expect(early.types()).toContain('welcome')
  sessions.open(slow)
  slow.say(encodeJsonFrame('hello', 0, hello(hub.clock.now())))
  slow.bufferedBytes = 9 * 1024 * 1024
  hub.clock.advance(12_000)
  expect(slow.closed).toEqual([4001, 'reads too slowly'])
  expect(silent.closed).toEqual([1008, 'no hello received'])
  expect(early.closed).toBeUndefined()
  sessions.close()
  expect(early.closed).toEqual([1001, 'the hub is stopping'])
})
