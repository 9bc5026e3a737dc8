import type { HelloPayload } from '@firebreak/core'
import { FakeClock, fakeRuntime } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { Trouble } from '../trouble/trouble.ts'
import type { HubTransport } from './hub-channel.ts'
import { HubLink } from './hub-link.ts'
import { RenewableToken } from './renewable-token.ts'

/** A link to hubs `a` and `b` with heartbeats every second; `moves` are the hubs that it tried to connect to. */
function setUp(isDown: (hub: string) => boolean = () => false) {
  const clock = new FakeClock()
  const runtime = fakeRuntime(1, clock)
  const moves: string[] = []
  const transport: HubTransport = {
    hasHttp: false,
    open({ sensorUrl }, _token, owner) {
      const hub = new URL(sensorUrl).hostname
      moves.push(hub)
      if (isDown(hub)) throw new Error('connection refused')
      runtime.timers.setImmediate(() => owner.onOpen())
      return { send() {}, bufferedBytes: 0, close() {}, terminate: () => owner.onClose(undefined) }
    },
  }
  const link = new HubLink({
    ...{
      urls: ['http://a:1', 'http://b:1'],
      token: new RenewableToken({}, new Trouble(() => {})),
      transport,
      maxQueuedReports: 1,
      maxQueuedEntries: 1,
    },
    ...{ clock, wallClock: clock, timers: clock, random: () => 0, trouble: new Trouble(() => {}) },
    reporter: { serviceId: 's', hostId: 'h', instanceId: 'i' },
    hello: () => ({}) as HelloPayload,
    onFrame() {},
    onDown() {},
  })
  link.expectHeartbeat(1e9)
  link.start()
  /** For the given seconds: the current hub says whether it is cut off. */
  const hear = (seconds: number, isCutOff: (hub: string) => boolean) => {
    for (let second = 0; second < seconds; second++) {
      clock.advance(1000)
      if (isCutOff(moves.at(-1)!)) link.preferAnother()
      else link.isWell()
    }
  }
  return { moves, hear }
}

test('a process that found both hubs cut off is connected within 5 s of one recovering', () => {
  const { moves, hear } = setUp()
  hear(2, () => true)
  expect(moves).toEqual(['a', 'b'])
  hear(5, (hub) => hub === 'b')
  expect(moves).toEqual(['a', 'b', 'a'])
  hear(600, (hub) => hub === 'b')
  expect(moves).toHaveLength(3)
})

test('if all are cut off for long, moves become rare, and a recovered one is found after as long again at most', () => {
  const { moves, hear } = setUp()
  hear(60, () => true)
  const during = moves.length
  expect(during).toBeLessThan(12)
  const stays = moves.at(-1)!
  hear(60, (hub) => hub === stays)
  expect(moves.at(-1)).not.toBe(stays)
  hear(3600, () => true)
  expect(moves.length - during).toBeLessThan(30)
})

test('a process on a cut-off hub rarely tries the other while that is down', () => {
  const { moves, hear } = setUp((hub) => hub === 'b')
  hear(60, () => true)
  expect(moves.filter((hub) => hub === 'b').length).toBeLessThan(7)
  expect(moves.at(-1)).toBe('a')
})

test('a hub that was down when it was tried is found within 5 s of its return', () => {
  let isDown = true
  const { moves, hear } = setUp((hub) => hub === 'b' && isDown)
  hear(2, () => true)
  isDown = false
  hear(5, (hub) => hub === 'a')
  expect(moves.at(-1)).toBe('b')
})
