import { encodeCommand } from '@firebreak/core/resp'
import { type FakeRuntime, fakeRuntime } from '@firebreak/testkit'
import { expect, onTestFinished, test } from 'vitest'
import { type ProxyOptions, resolveProxyOptions } from './options.ts'
import { ProxyCore } from './proxy-core.ts'
import type { ConnectTarget, Transport, TransportKind, TransportOwner } from './transport/transport.ts'

const nobody: TransportOwner = { onData() {}, onDrain() {}, onClose() {} }

/** One end of a connection in memory: what is written arrives at the other end a virtual millisecond later. */
class PipeEnd implements Transport {
  readonly queuedBytes = 0
  readonly peer = 'memory:1'
  readonly local = 'memory:2'
  readonly #runtime: FakeRuntime
  other!: PipeEnd
  owner: TransportOwner = nobody
  #isClosed = false

  constructor(runtime: FakeRuntime) {
    this.#runtime = runtime
  }

  static pair(runtime: FakeRuntime): [PipeEnd, PipeEnd] {
    const ends: [PipeEnd, PipeEnd] = [new PipeEnd(runtime), new PipeEnd(runtime)]
    ends[0].other = ends[1]
    ends[1].other = ends[0]
    return ends
  }

  write(bytes: Buffer): boolean {
    const copy = Buffer.from(bytes)
    this.#later(() => this.other.#isClosed || this.other.owner.onData(copy, copy.length))
    return true
  }

  pause(): void {}
  resume(): void {}

  finish(): void {
    this.#later(() => this.other.owner.onEnd?.())
  }

  end(): void {
    this.#later(() => this.destroy())
  }

  destroy(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.owner.onClose(undefined)
    this.#later(() => this.other.destroy())
  }

  #later(callback: () => void): void {
    this.#runtime.timers.setTimeout(callback, 1)
  }
}

/** A Redis in memory that answers each request with `answer`; each request arrives whole. */
function memoryRedis(runtime: FakeRuntime, answer: (words: string[]) => string): TransportKind {
  return {
    connect(_target: ConnectTarget, owner: TransportOwner, onConnect: () => void): Transport {
      const [ours, theirs] = PipeEnd.pair(runtime)
      ours.owner = owner
      theirs.owner = {
        onData(bytes, length) {
          const lines = bytes.toString('latin1', 0, length).split('\r\n')
          while (lines.length > 1) {
            const count = Number(lines.shift()!.slice(1))
            const words = lines.splice(0, count * 2).filter((_, index) => index % 2 === 1)
            theirs.write(Buffer.from(answer(words)))
          }
        },
        onDrain() {},
        onClose() {},
      }
      runtime.timers.setTimeout(onConnect, 1)
      return ours
    },
  }
}

/** A Redis that refuses all connections. */
function unreachable(runtime: FakeRuntime): TransportKind {
  return {
    ...memoryRedis(runtime, () => ''),
    connect(_target, owner) {
      const [ours] = PipeEnd.pair(runtime)
      ours.owner = owner
      runtime.timers.setTimeout(() => owner.onClose(new Error('refused')), 1)
      return ours
    },
  }
}

function setUp(makeRedis: (runtime: FakeRuntime) => TransportKind, options: Partial<ProxyOptions> = {}) {
  const runtime = fakeRuntime(7)
  const logger = { info() {}, warn() {} }
  const resolved = resolveProxyOptions({ upstream: 'redis://memory:6379', logger, ...options })
  const core = new ProxyCore(resolved, 'single', { transports: makeRedis(runtime), runtime })
  onTestFinished(() => core.close())
  return { runtime, core }
}

/** A client of a core in memory. */
function connect(core: ProxyCore, runtime: FakeRuntime) {
  const [ours, theirs] = PipeEnd.pair(runtime)
  const seen = { text: '', isClosed: false }
  ours.owner = {
    onData: (bytes, length) => void (seen.text += bytes.toString('latin1', 0, length)),
    onDrain() {},
    onClose: () => void (seen.isClosed = true),
  }
  core.accept((client) => {
    theirs.owner = client
    return theirs
  })
  return { seen, send: (...words: string[]) => ours.write(Buffer.from(encodeCommand(words))) }
}

test('a core serves clients and asks Redis over the connections and the clock that it is given', () => {
  const keys = new Map<string, string>()
  const { runtime, core } = setUp((runtime) =>
    memoryRedis(runtime, ([name, key, value]) => {
      if (name === 'PING') return '+PONG\r\n'
      if (name === 'SET') keys.set(key!, value!)
      const known = keys.get(key!)
      return name === 'SET' ? '+OK\r\n' : known === undefined ? '$-1\r\n' : `$${known.length}\r\n${known}\r\n`
    }),
  )
  const one = connect(core, runtime)
  const two = connect(core, runtime)
  one.send('SET', 'key', 'value')
  one.send('GET', 'key')
  one.send('GET', 'other')
  two.send('PING')
  runtime.clock.advance(1)
  expect([one.seen.text, two.seen.text]).toEqual(['', ''])
  runtime.clock.advance(10)
  expect([one.seen.text, two.seen.text]).toEqual(['+OK\r\n$5\r\nvalue\r\n$-1\r\n', '+PONG\r\n'])
  // The first also waited for the connection: one millisecond for that, and one each way.
  one.send('GET', 'key')
  runtime.clock.advance(10)
  one.send('FIREBREAK', 'LATENCY')
  runtime.clock.advance(10)
  expect(one.seen.text).toMatch(/\$3\r\nGET\r\n.*\$5\r\ncount\r\n:3\r\n.*\$5\r\nmaxMs\r\n\$5\r\n3\.000/s)
})

test('time that passes only on the core’s clock ends what waits for it', () => {
  const { runtime, core } = setUp(unreachable, { connectWaitMs: 2000, idleTimeoutMs: 60_000 })
  const client = connect(core, runtime)
  client.send('GET', 'key')
  runtime.clock.advance(1900)
  expect(client.seen.text).toBe('')
  runtime.clock.advance(200)
  expect(client.seen.text).toBe('-ERR Firebreak: no connection to Redis at memory:6379: refused\r\n')
  expect([client.seen.isClosed, core.counters.idleClosed]).toEqual([false, 0])
  runtime.clock.advance(60_000)
  expect([client.seen.isClosed, core.counters.idleClosed]).toEqual([true, 1])
})

test('a shared connection that died silently is replaced, and its clients keep waiting', () => {
  const dead = new Set<number>()
  let connections = 0
  const { runtime, core } = setUp((runtime) => ({
    connect(target, owner, onConnect) {
      const number = ++connections
      // Bytes sent on a dead connection do not arrive.
      const live = memoryRedis(runtime, ([name]) => (dead.has(number) ? '' : name === 'PING' ? '+PONG\r\n' : '+OK\r\n'))
      return live.connect(target, owner, onConnect)
    },
  }))
  const one = connect(core, runtime)
  one.send('SET', 'key', 'value')
  runtime.clock.advance(10)
  expect(one.seen.text).toBe('+OK\r\n')
  for (let number = 1; number <= connections; number++) dead.add(number)
  one.send('SET', 'key', 'other')
  runtime.clock.advance(1500)
  const two = connect(core, runtime)
  two.send('SET', 'key', 'another')
  runtime.clock.advance(10)
  expect(two.seen.text).toBe('+OK\r\n')
  expect(one.seen).toEqual({ text: '+OK\r\n', isClosed: false })
})

test.each([
  ['idle', { idleTimeoutMs: 10_000 }],
  ['a stranger', { users: [{ name: 'ann', password: 'secret' }] }],
])('a client of a proxy that was idle for long has its full time before it is closed as %s', (_, options) => {
  const { runtime, core } = setUp((runtime) => memoryRedis(runtime, () => '+PONG\r\n'), options)
  runtime.clock.advance(60_000)
  const client = connect(core, runtime)
  runtime.clock.advance(9000)
  expect(client.seen.isClosed).toBe(false)
  runtime.clock.advance(2000)
  expect(client.seen.isClosed).toBe(true)
})
