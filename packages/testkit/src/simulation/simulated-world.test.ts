import { expect, test } from 'vitest'
import { SimulatedWorld } from './simulated-world.ts'

test('events happen in the order of their time, then of their creation', async () => {
  const world = new SimulatedWorld({ seed: 1 })
  const seen: string[] = []
  for (const [name, delayMs] of [
    ['c', 5],
    ['a', 1],
    ['d', 5],
    ['b', 1.5],
    ['z', 100],
  ] as const) {
    world.schedule(delayMs, () => seen.push(`${name}@${world.elapsedMs}`))
  }
  await world.run(50)
  expect(seen).toEqual(['a@1', 'b@1.5', 'c@5', 'd@5'])
  expect(world.elapsedMs).toBe(50)
})

test('between two events every promise that can settle has settled, however deep', async () => {
  const world = new SimulatedWorld({ seed: 1 })
  const app = world.process('app')
  const seen: string[] = []
  const deep = async (left: number): Promise<void> => {
    await new Promise<void>((resolve) => (left % 2 === 0 ? process.nextTick(resolve) : queueMicrotask(resolve)))
    if (left > 0) await deep(left - 1)
  }
  for (let index = 0; index < 200; index++) {
    app.runtime.timers.setTimeout(() => {
      seen.push(`begin ${index}`)
      void deep(30).then(() => seen.push(`end ${index}`))
    }, 1)
  }
  await world.run(1)
  expect(seen).toEqual(Array.from({ length: 200 }, (_, index) => [`begin ${index}`, `end ${index}`]).flat())
})

test('a process has timers, a monotonic clock and a wall clock that steps and drifts', async () => {
  const world = new SimulatedWorld({ seed: 1, startMs: 1000 })
  const { runtime, ...rest } = world.process('app', { wallOffsetMs: 500, wallDriftMsPerSecond: 10 })
  expect(rest).toBeDefined()
  const app = world.process('other')
  let ticks = 0
  const interval = runtime.timers.setInterval(() => ticks++, 10)
  runtime.timers.setTimeout(() => interval.cancel(), 55)
  await world.run(1000)
  expect(ticks).toBe(5)
  expect(runtime.clock.now()).toBe(2000)
  expect(runtime.wallClock.now()).toBe(2510)
  app.stepWallClock(-300)
  expect(app.runtime.wallClock.now()).toBe(1700)
  expect(app.runtime.clock.now()).toBe(2000)
  expect(runtime.newId()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
})

test('timers die with their process, and wait while it is frozen', async () => {
  const world = new SimulatedWorld({ seed: 1 })
  const seen: string[] = []
  const killed = world.process('killed')
  const frozen = world.process('frozen')
  killed.runtime.timers.setTimeout(() => seen.push('never'), 10)
  frozen.runtime.timers.setTimeout(() => seen.push(`timer at ${world.elapsedMs}`), 10)
  frozen.runtime.timers.setInterval(() => seen.push(`interval at ${world.elapsedMs}`), 20)
  killed.kill()
  frozen.freeze()
  await world.run(100)
  expect(seen).toEqual([])
  frozen.thaw()
  await world.run(25)
  expect(seen).toEqual(['timer at 100', 'interval at 100', 'interval at 120'])
  killed.runtime.timers.setTimeout(() => seen.push('never'), 1)
  await world.run(10)
  expect(seen).not.toContain('never')
})

test('events at the moment when a process is resumed happen after those that waited for it, paused again or not', async () => {
  for (const isFrozenAgain of [false, true]) {
    const world = new SimulatedWorld({ seed: 6 })
    const process = world.process('a')
    const order: string[] = []
    process.freeze()
    process.schedule(1, () => order.push('held 1'))
    process.schedule(2, () => order.push('held 2'))
    await world.run(10)
    // It is due first, so it is executed first.
    world.schedule(0, () => {
      if (isFrozenAgain) process.freeze()
      process.perform(() => order.push('new'))
    })
    process.thaw()
    await world.run(10)
    process.thaw()
    await world.run(10)
    expect(order).toEqual(['held 1', 'held 2', 'new'])
  }
})

test('uncaught errors fail the run: a throw, a rejection, a rejection that nobody holds', async () => {
  const failing: ((world: SimulatedWorld) => void)[] = [
    (world) => world.process('app').runtime.timers.setTimeout(() => JSON.parse('{'), 5),
    (world) => world.process('app').start(async () => JSON.parse('{')),
    (world) => world.schedule(5, () => JSON.parse('{')),
    (world) => world.schedule(5, () => void (async () => JSON.parse('{'))()),
  ]
  // The test runner would treat the last one as its own failure.
  const others = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  try {
    for (const fail of failing) {
      const world = new SimulatedWorld({ seed: 1 })
      fail(world)
      await expect(world.run(50)).rejects.toThrow(SyntaxError)
      expect(world.elapsedMs).toBeLessThan(50)
    }
    expect(process.listenerCount('unhandledRejection')).toBe(0)
  } finally {
    for (const listener of others) process.on('unhandledRejection', listener)
  }
})

test('finish moves time until a promise has settled, and no further', async () => {
  const world = new SimulatedWorld({ seed: 1 })
  const app = world.process('app')
  await expect(world.finish(app.sleep(30).then(() => 'done'))).resolves.toBe('done')
  expect(world.elapsedMs).toBe(30)
  await expect(world.finish(new Promise(() => {}), 100)).rejects.toThrow('within 100 ms of virtual time')
})

test('an endless loop at one instant is reported', async () => {
  const world = new SimulatedWorld({ seed: 1, maxEventsPerInstant: 100 })
  const again = (): void => void world.schedule(0, again)
  again()
  await expect(world.run(1)).rejects.toThrow('time does not move on')
})

test('the same seed gives the same ids and numbers; a fork depends only on its name', () => {
  const draw = (seed: number): unknown[] => {
    const world = new SimulatedWorld({ seed })
    const a = world.process('a')
    const b = world.process('b')
    return [a.runtime.newId(), b.runtime.random(), world.process('a').runtime.newId(), world.chance.fork('x').next()]
  }
  expect(draw(7)).toEqual(draw(7))
  expect(new Set([...draw(7), ...draw(8)]).size).toBe(8)
  const world = new SimulatedWorld({ seed: 7 })
  world.chance.next()
  expect(world.chance.fork('x').next()).toBe(draw(7)[3])
})

test('the log keeps its last lines and a digest of all', () => {
  const world = new SimulatedWorld({ seed: 1, maxLogLines: 3 })
  for (let index = 0; index < 2000; index++) world.note(`line ${index}`)
  expect(world.log.lines).toEqual(['0.000 line 1997', '0.000 line 1998', '0.000 line 1999'])
  expect(world.log.count).toBe(2000)
  const before = world.log.digest
  world.note('one more')
  expect(world.log.digest).not.toBe(before)
})
