import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FaultPlayer, type FaultSchedule, randomSchedule } from './fault-schedule.ts'
import { PipeDuplex } from './pipe-duplex.ts'
import type { PipeEnd } from './pipe-end.ts'
import { processFaults } from './process-faults.ts'
import { SimulatedWorld } from './simulated-world.ts'
import { VirtualNetwork, type VirtualNetworkOptions } from './virtual-network.ts'

const address = 'server:1'

/** A client and a server that record what they receive. */
function build(seed: number, options: VirtualNetworkOptions = {}, isFramed = false) {
  const world = new SimulatedWorld({ seed })
  const network = new VirtualNetwork(world, options)
  const server = world.process('server')
  const app = world.process('app')
  const accepted: { end: PipeEnd; text: string; news: string[] }[] = []
  network.listen(server, address, (end) => {
    const taken = { end, text: '', news: [] as string[] }
    accepted.push(taken)
    end.onData = (bytes) => {
      taken.text += Buffer.from(bytes).toString()
      taken.news.push(`data ${bytes.length}`)
    }
    end.onClose = (error) => taken.news.push(`close ${error?.code ?? 'in order'} at ${world.elapsedMs.toFixed(0)}`)
  })
  const connect = () => {
    const news: string[] = []
    const end = network.connect(app, address, { isFramed })
    end.onConnect = () => news.push('connect')
    end.onData = (bytes) => news.push(`data ${Buffer.from(bytes).toString()}`)
    end.onClose = (error) => news.push(`close ${error?.code ?? 'in order'} at ${world.elapsedMs.toFixed(0)}`)
    return { end, news, write: (text: string) => end.write(Buffer.from(text)) }
  }
  const player = new FaultPlayer(world, network.faults)
  return { world, network, server, app, accepted, connect, player }
}

test('bytes arrive whole and in order on each connection, whatever the delays; connections overtake each other', async () => {
  const { world, accepted, connect } = build(1, { delayMs: [0, 50], splitProbability: 0.5 })
  const clients = Array.from({ length: 5 }, connect)
  const order: number[] = []
  await world.run(200)
  clients.forEach((_, index) => {
    const { onData } = accepted[index]!.end
    accepted[index]!.end.onData = (bytes) => {
      order.push(index)
      onData(bytes)
    }
  })
  for (let round = 0; round < 40; round++) {
    for (const client of clients) client.write(`[${round}]`)
    await world.run(3)
  }
  await world.run(100)
  const all = Array.from({ length: 40 }, (_, round) => `[${round}]`).join('')
  expect(accepted.map(({ text }) => text)).toEqual(Array.from({ length: 5 }, () => all))
  expect(order.join('')).not.toBe([...order].sort().join(''))
  expect(new Set(order.slice(0, 5)).size).toBeLessThan(5)
})

test('under any faults without loss, the received bytes are a prefix of the sent ones', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(1_000_000), async (seed) => {
      const { world, accepted, connect, player } = build(seed, { splitProbability: 0.4, windowBytes: 200 })
      const targets = ['app', 'server', 'app>server:1', '*']
      const choices = ['cut', 'blackHole', 'deafTo', 'deafFrom', 'slow', 'slowReader', 'halfOpen', 'refuse']
      player.play(
        randomSchedule(
          world.chance.fork('faults'),
          choices.map((kind) => ({ kind, targets, forMs: [1, 400] as const })),
          { count: 5, toMs: 1000 },
        ),
      )
      const { write } = connect()
      let sent = ''
      for (let round = 0; round < 60; round++) {
        const text = `<${round}>`
        write(text)
        sent += text
        await world.run(20)
      }
      player.undoAll()
      await world.run(60_000)
      for (const { text } of accepted) expect(sent.startsWith(text)).toBe(true)
      expect(accepted.length).toBeLessThanOrEqual(1)
    }),
    { numRuns: 60 },
  )
})

test('a cut resets both ends after a prefix of the bytes in flight, even in the middle of a write', async () => {
  const lengths = new Set<number>()
  for (let seed = 0; seed < 30; seed++) {
    const { world, network, accepted, connect } = build(seed)
    const client = connect()
    await world.run(5)
    client.write('0123456789')
    network.cut('app')
    await world.run(5)
    lengths.add(accepted[0]!.text.length)
    expect('0123456789'.startsWith(accepted[0]!.text)).toBe(true)
    expect(accepted[0]!.news.at(-1)).toContain('ECONNRESET')
    expect(client.news.at(-1)).toContain('ECONNRESET')
    expect(network.connections).toBe(0)
  }
  expect(lengths.size).toBeGreaterThan(5)
})

test('a framed connection keeps frames whole, even when it is cut or read slowly', async () => {
  for (let seed = 0; seed < 20; seed++) {
    const { world, network, accepted, connect, player } = build(seed, { splitProbability: 1 }, true)
    player.play([{ atMs: 0, kind: 'slowReader', target: 'server', amount: 400, forMs: 300 }])
    const client = connect()
    await world.run(5)
    for (let index = 0; index < 10; index++) client.write('x'.repeat(100))
    await world.run(seed * 10)
    network.cut('*')
    await world.run(1000)
    const frames = accepted[0]!.news.filter((line) => line.startsWith('data'))
    expect(frames.every((line) => line === 'data 100')).toBe(true)
    expect(frames.length).toBeLessThan(10)
  }
})

test('a black hole holds bytes, ends and new connections until it is over', async () => {
  const { world, accepted, connect, player } = build(2)
  player.play([{ atMs: 10, kind: 'blackHole', target: 'server', forMs: 100 }])
  const client = connect()
  await world.run(11)
  client.write('late')
  client.end.end()
  const second = connect()
  await world.run(90)
  expect([accepted.length, accepted[0]!.text, second.news]).toEqual([1, '', []])
  await world.run(20)
  expect([accepted.length, accepted[0]!.text]).toEqual([2, 'late'])
  expect(accepted[0]!.news.at(-1)).toMatch(/^close in order at 11/)
  expect(second.news).toEqual(['connect'])
})

test('if one direction is blocked, the other works', async () => {
  const { world, accepted, connect, player } = build(3)
  player.play([{ atMs: 10, kind: 'deafFrom', target: 'server', forMs: 100 }])
  const client = connect()
  await world.run(11)
  client.write('there')
  accepted[0]!.end.write(Buffer.from('back'))
  await world.run(50)
  expect([accepted[0]!.text, client.news]).toEqual(['there', ['connect']])
  await world.run(100)
  expect(client.news).toEqual(['connect', 'data back'])
})

test('half open: neither end notices, nothing arrives, and a new connection works', async () => {
  const { world, network, accepted, connect } = build(4)
  const client = connect()
  await world.run(5)
  network.loseSilently('app')
  client.write('lost')
  accepted[0]!.end.write(Buffer.from('lost'))
  await world.run(60_000)
  expect([accepted[0]!.news, client.news]).toEqual([[], ['connect']])
  connect().write('new')
  await world.run(5)
  expect(accepted[1]!.text).toBe('new')
})

test('a slow reader fills the window: the writer is told to wait, and when to continue; the limit closes the connection', async () => {
  const limits = { windowBytes: 1000, maxOutstandingBytes: 5000 }
  const { world, accepted, connect, player } = build(5, limits)
  player.play([{ atMs: 0, kind: 'slowReader', target: 'server', amount: 1000, forMs: 5000 }])
  const client = connect()
  await world.run(5)
  let drainedAt = 0
  client.end.onDrain = () => (drainedAt = world.elapsedMs)
  expect(client.write('x'.repeat(900))).toBe(true)
  expect(client.write('x'.repeat(600))).toBe(false)
  expect(client.end.queuedBytes).toBe(500)
  await world.run(3000)
  expect(accepted[0]!.text).toHaveLength(1500)
  expect(drainedAt).toBeGreaterThan(400)
  expect(drainedAt).toBeLessThan(700)
  accepted[0]!.end.pause()
  for (let index = 0; index < 6; index++) client.write('x'.repeat(1000))
  await world.run(1)
  expect(client.news.at(-1)).toContain('ENOBUFS')
})

test('refused, killed and paused: the same errors as from a real socket', async () => {
  const { world, network, server, app, accepted, connect, player } = build(6)
  player.can(processFaults([{ name: 'server', current: () => server }]))
  player.play([
    { atMs: 0, kind: 'refuse', target: 'server', forMs: 10 },
    { atMs: 50, kind: 'freeze', target: 'server', forMs: 100 },
    { atMs: 200, kind: 'kill', target: 'server' },
  ])
  await world.run(1)
  const refused = connect()
  await world.run(49)
  expect(refused.news[0]).toContain('ECONNREFUSED')
  await world.run(5)
  const client = connect()
  client.write('waits')
  await world.run(40)
  // The operating system of a paused process accepts the connection; the process does not.
  expect([client.news, accepted.length]).toEqual([['connect'], 0])
  await world.run(60)
  expect(accepted[0]!.text).toBe('waits')
  await world.run(60)
  expect(client.news.at(-1)).toMatch(/^close in order at 20/)
  const dead = connect()
  await world.run(5)
  expect(dead.news[0]).toContain('ECONNREFUSED')
  network.listen(world.process('server'), address, (end) => end.write(Buffer.from('again')))
  const again = connect()
  await world.run(5)
  expect(again.news).toEqual(['connect', 'data again'])
  app.kill()
  await world.run(5)
  expect(network.connections).toBe(0)
})

test('a resumed server accepts a connection before it reads its first bytes, whatever else ends at that moment', async () => {
  const { world, network, server, accepted, connect } = build(10)
  const undo = network.faults['blackHole']!({ kind: 'blackHole', target: 'elsewhere', atMs: 0 }, world.chance)!
  server.freeze()
  const client = connect()
  client.end.onConnect = () => client.write('first')
  await world.run(20)
  undo()
  server.thaw()
  await world.run(20)
  client.write(' second')
  await world.run(20)
  expect(accepted.map(({ text }) => text)).toEqual(['first second'])
})

test('a pipe as a Node stream: backpressure, end, errors', async () => {
  const { world, network, app, accepted } = build(7, { windowBytes: 1000 })
  const stream = new PipeDuplex(network.connect(app, address))
  const news: string[] = []
  for (const event of ['connect', 'end', 'close', 'drain'] as const) stream.on(event, () => news.push(event))
  stream.on('error', (error: NodeJS.ErrnoException) => news.push(`error ${error.code}`))
  stream.on('data', (bytes: Buffer) => news.push(`data ${bytes.toString()}`))
  expect(stream.connecting).toBe(true)
  for (let index = 0; index < 50; index++) stream.write('x'.repeat(1000))
  await world.run(100)
  expect(accepted[0]!.text).toHaveLength(50_000)
  accepted[0]!.end.write(Buffer.from('hello'))
  await world.run(5)
  expect(news.filter((event) => event !== 'drain')).toEqual(['connect', 'data hello'])
  accepted[0]!.end.end()
  await world.run(5)
  expect(news.slice(-2)).toEqual(['end', 'close'])
  const second = new PipeDuplex(network.connect(app, address))
  second.on('error', (error: NodeJS.ErrnoException) => news.push(`error ${error.code}`))
  second.on('close', () => news.push('close'))
  await world.run(5)
  network.cut('app')
  await world.run(5)
  expect(news.slice(-2)).toEqual(['error ECONNRESET', 'close'])
})

test('a schedule is data: it survives JSON, an unknown kind is refused, equal seeds give equal schedules', async () => {
  const draw = (seed: number): FaultSchedule => {
    const choices = [
      { kind: 'cut', targets: ['a', 'b'], weight: 5 },
      { kind: 'slow', targets: ['a'], forMs: [10, 20] as const, amount: [1, 9] as const },
    ]
    return randomSchedule(new SimulatedWorld({ seed }).chance, choices, { count: 50, toMs: 1000 })
  }
  expect(draw(1)).toEqual(draw(1))
  expect(draw(1)).not.toEqual(draw(2))
  expect(JSON.parse(JSON.stringify(draw(1)))).toEqual(draw(1))
  expect(draw(1).filter(({ kind }) => kind === 'cut').length).toBeGreaterThan(30)
  const { player } = build(1)
  expect(() => player.play([{ atMs: 1, kind: 'earthquake', target: '*' }])).toThrow('earthquake')
})
