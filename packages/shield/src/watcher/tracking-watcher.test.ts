import type { RetryPolicy } from '@firebreak/core/settings'
import { FakeClock, memoryPipe } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { Trouble } from '../trouble/trouble.ts'
import { shieldRetrySteps } from './tracking-retry.ts'
import { TrackingWatcher } from './tracking-watcher.ts'

/** A watcher that is live (or in fallback, if tracking is refused), and the node's end of its connection. */
function setUp({ isTracked = true, retry = {} }: { isTracked?: boolean; retry?: Partial<RetryPolicy> } = {}) {
  const clock = new FakeClock()
  const pipe = memoryPipe()
  const watcher = new TrackingWatcher({
    node: 'n',
    upstream: { isCluster: false, nodeOf: () => 'n', connect: () => pipe.open, credentials: () => ({}) },
    leaseMs: 300,
    trackingRetry: { ...shieldRetrySteps.tracking.policy, ...retry },
    clock,
    timers: clock,
    random: () => 0,
    trouble: new Trouble(() => {}),
    onInvalidated: () => {},
    onFlush: () => {},
  })
  const { say } = pipe
  say(isTracked ? '%0\r\n+OK\r\n' : '%0\r\n-NOPERM no tracking\r\n')
  expect(watcher.state).toBe(isTracked ? 'live' : 'fallback')
  return { watcher, say, clock, pipe }
}

const key = Buffer.from('k')

test('if a database is refused, none of the reads that were sent for it returns a value of another', () => {
  const { watcher, say } = setUp()
  const seen: (string | undefined)[] = []
  const read = (database: number) =>
    watcher.read(database, key, Buffer.from('GET k'), (reading) =>
      seen.push(reading && Buffer.from(reading.reply).toString()),
    )
  const answered = '+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:-1\r\n+db0\r\n'
  read(1)
  read(1)
  say(`-NOPERM no SELECT\r\n${answered}${answered}`)
  expect(seen).toEqual([undefined, undefined])
  // The refused database is tried again, and reads of the other one are not affected.
  read(1)
  read(0)
  say(`-NOPERM no SELECT\r\n${answered}+OK\r\n${answered}`)
  read(0)
  say(answered)
  expect(seen.slice(2)).toEqual([undefined, '+db0\r\n', '+db0\r\n'])
})

test('an idle connection has as long as any other to answer before it is given up', () => {
  const { watcher, clock, pipe } = setUp()
  watcher.setIdle(true)
  clock.advance(60_000)
  watcher.setIdle(false)
  clock.advance(600)
  expect(pipe.opened).toBe(1)
  clock.advance(200)
  expect(pipe.opened).toBe(2)
})

test.each([
  ['live', true],
  ['in its fallback', false],
])(
  'a watcher that is %s does not read over a connection that is silent for a lease, and opens another',
  (_, isTracked) => {
    const { watcher, clock, pipe } = setUp({ isTracked })
    clock.advance(299)
    expect(watcher.canRead).toBe(true)
    clock.advance(1)
    expect(watcher.canRead).toBe(false)
    expect(watcher.isExpired).toBe(true)
    clock.advance(700)
    expect(pipe.opened).toBe(2)
  },
)

test('a read that is returned because no reply came holds no lease, and a late reply restores it', () => {
  const { watcher, say, clock } = setUp()
  const seen: unknown[] = []
  watcher.read(0, key, Buffer.from('GET k'), (reading) => seen.push([reading, watcher.canRead]))
  clock.advance(300)
  expect(seen).toEqual([])
  clock.advance(100)
  expect(seen).toEqual([[undefined, false]])
  say('+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:-1\r\n+v\r\n$1\r\n1\r\n$1\r\n2\r\n')
  expect(watcher.canRead).toBe(true)
  expect(seen).toHaveLength(1)
})

test('an untrusted certificate is reported as such, and the connection is tried again', () => {
  const { watcher, pipe, clock } = setUp()
  const cause = Object.assign(new Error('self-signed certificate in certificate chain'), {
    code: 'SELF_SIGNED_CERT_IN_CHAIN',
  })
  pipe.end(cause)
  expect([watcher.state, watcher.detail]).toEqual([
    'down',
    'no TLS connection to n: self-signed certificate in certificate chain',
  ])
  clock.advance(100)
  expect(pipe.opened).toBe(2)
})

/** Ends fifty connections, each soon after it was opened. */
function keepEnding(pipe: ReturnType<typeof memoryPipe>, clock: FakeClock): void {
  for (let nth = 0; nth < 50; nth++) {
    pipe.end()
    clock.advance(300)
  }
}

test('a connection whose tries are used up is given up if so configured, and serves nothing', () => {
  const { watcher, pipe, clock } = setUp({ retry: { tries: 3, atEnd: 'stop' } })
  keepEnding(pipe, clock)
  expect(pipe.opened).toBe(4)
  expect([watcher.canRead, watcher.isExpired]).toEqual([false, true])
  expect(watcher.detail).toContain('given up until this process is restarted after 4 failures in a row')
})

test('one that only alarms keeps retrying at the longest pause, and recovers', () => {
  const { watcher, pipe, clock, say } = setUp({ retry: { tries: 3 } })
  keepEnding(pipe, clock)
  expect(pipe.opened).toBe(51)
  expect(watcher.detail).toContain('still retrying after 50 failures in a row')
  say('%0\r\n+OK\r\n')
  expect([watcher.state, watcher.canRead, watcher.isExpired]).toEqual(['live', true, false])
})
