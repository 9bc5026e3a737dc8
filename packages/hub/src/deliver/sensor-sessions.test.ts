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
import { TestCore } from '../testing/test-core.ts'
import type { SensorChannel } from './sensor-channel.ts'

/** The sensor's end of a channel in memory. */
class MemoryChannel implements SensorChannel {
  readonly frames: Frame[] = []
  closed: readonly [code: number, reason: string] | undefined
  bufferedBytes = 0
  #onFrame: (frame: Uint8Array) => void = () => {}
  #onClose: () => void = () => {}

  send(frame: Uint8Array): void {
    this.frames.push(decodeFrame(frame))
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
  sessions.open(wrong, (token) => (token === 'secret' ? anyApp : undefined))
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
