import { parseRule } from '@firebreak/core/rules'
import { HubCore, openRedisStore, startHub } from '@firebreak/hub'
import { FaultProxy, type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, test } from 'vitest'

let server: RedisServer
let redis: Redis
let cores: HubCore[]
let proxy: FaultProxy
let closers: (() => Promise<void>)[]

beforeEach(async () => {
  server = await startRedis()
  redis = new Redis(server.port)
  proxy = await FaultProxy.start(server.port)
  cores = []
  closers = []
})
afterEach(async () => {
  server.child.signal('SIGCONT')
  await Promise.all([...cores.map((core) => core.close()), ...closers.map((close) => close())])
  redis.disconnect()
  await proxy.close()
  await server.stop()
})

/** One that can be cut off by `proxy`, unless it is told another port. */
async function openHub(port = proxy.port, hubId = `hub-${cores.length}`): Promise<HubCore> {
  const core = await HubCore.open(await openRedisStore(`redis://127.0.0.1:${port}`), { hubId, loadOf: () => 0 })
  core.start()
  cores.push(core)
  return core
}

async function startWithFile(rules: readonly object[]): Promise<HubCore> {
  const hub = await startHub({ storeUrl: server.url, logLevel: 'silent', initialRules: rules })
  closers.push(() => hub.close())
  return hub.core
}

const rule = (id: string, threshold = 100) => parseRule({ id, prefix: id, threshold })
const idsOf = (core: HubCore) => core.rules().rules.map(({ id, levels }) => `${id}:${levels[0]!.enter}`)
const alarmIds = (core: HubCore) => core.alarms.list().map(({ id }) => id)

/** Cuts all hubs behind the proxy off, and waits until they know. */
async function cutOff(...hubs: HubCore[]): Promise<void> {
  proxy.faults.refusesConnections = true
  proxy.cut()
  await waitFor(() => hubs.every((core) => alarmIds(core).includes('board')))
}

function letIn(): void {
  proxy.faults.refusesConnections = false
}

/** All that the store has now; the function puts it back, and nothing else. */
async function backUp(): Promise<() => Promise<void>> {
  const keys = await redis.keys('*')
  const dumps = await Promise.all(keys.map((key) => redis.dumpBuffer(key)))
  return async () => {
    const transaction = redis.multi().flushall()
    for (const [index, key] of keys.entries()) transaction.restore(key, 0, dumps[index]!)
    await transaction.exec()
  }
}

test('a store that lost everything and was filled by a hub that started first gets back what people made, and the switch', async () => {
  const core = await openHub()
  await core.putRule(rule('people', 7), 'ann')
  await core.setOff(true, 'ann')
  await cutOff(core)
  await redis.flushall()
  const late = await startWithFile([{ id: 'file', prefix: 'f', threshold: 1 }])
  expect(idsOf(late)).toEqual(['file:1'])
  letIn()
  await waitFor(() => idsOf(core).join() === 'people:7' && idsOf(late).join() === 'people:7')
  await waitFor(() => late.delivery.isOff)
  expect(core.delivery.isOff).toBe(true)
  expect((await core.store.load()).isOff).toBe(true)
  // What lost is not gone: whoever looks for it finds it.
  const [aside] = (await core.store.audit(9)).filter(({ what }) => what.includes('set aside'))
  expect(JSON.stringify(aside!.before)).toContain('"file"')
})

test('rules of a file fill only what never was', async () => {
  const file = [{ id: 'file', prefix: 'f', threshold: 1 }]
  const first = await startWithFile(file)
  expect(idsOf(first)).toEqual(['file:1'])
  await first.deleteRule('file', 'ann')
  expect(idsOf(await startWithFile(file))).toEqual([])
  await redis.flushall()
  await waitFor(() => alarmIds(first).includes('board-reset'))
  expect(idsOf(await startWithFile(file))).toEqual([])
})

test('a restored backup does not bring back what people have changed since, and it is told', async () => {
  const [one, two] = [await openHub(), await openHub()]
  await one.putRule(rule('a', 1), 'ann')
  await waitFor(() => idsOf(two).length === 1)
  const restore = await backUp()
  await one.putRule(rule('a', 2), 'ann')
  await one.setOff(true, 'ann')
  await waitFor(() => idsOf(two).join() === 'a:2' && two.delivery.isOff)
  await restore()
  await waitFor(() => alarmIds(one).includes('board-reset') || alarmIds(two).includes('board-reset'))
  await waitFor(async () => (await one.store.load()).rules[0]?.levels[0]?.enter === 2)
  expect((await one.store.load()).isOff).toBe(true)
  expect([idsOf(one), idsOf(two)]).toEqual([['a:2'], ['a:2']])
})

test('two lines under one version: the later change wins everywhere, the loser is in the audit, an alarm tells', async () => {
  const one = await openHub()
  await one.putRule(rule('a', 1), 'ann')
  const restore = await backUp()
  await one.putRule(rule('b', 2), 'ann')
  await cutOff(one)
  await restore()
  const two = await openHub(server.port, 'two')
  await two.putRule(rule('c', 3), 'bob')
  expect(two.rules().version).toBe(one.rules().version)
  letIn()
  await waitFor(() => alarmIds(one).includes('rules-diverged'))
  await waitFor(() => idsOf(one).join() === 'a:1,c:3')
  expect(idsOf(two)).toEqual(['a:1', 'c:3'])
  const [aside] = (await two.store.audit(9)).filter(({ what }) => what.includes('set aside'))
  expect(JSON.stringify(aside!.before)).toContain('"b"')
  // And they go on together.
  await one.putRule(rule('d', 4), 'ann')
  await waitFor(() => idsOf(two).includes('d:4'))
})

test('a change that the store refuses has not happened; a frozen one may have, is made once and has its audit entry', async () => {
  const core = await openHub()
  await core.putRule(rule('a', 1), 'ann')
  await cutOff(core)
  await expect(core.putRule(rule('b', 2), 'ann')).rejects.toMatchObject({ code: 'FB_STORE_AWAY' })
  letIn()
  await waitFor(() => !alarmIds(core).includes('board'))
  expect(idsOf(core)).toEqual(['a:1'])
  server.child.signal('SIGSTOP')
  await expect(core.putRule(rule('c', 3), 'ann', 'call-1')).rejects.toMatchObject({ code: 'FB_STORE_UNSURE' })
  server.child.signal('SIGCONT')
  await waitFor(() => idsOf(core).includes('c:3'))
  // The same call again is the same change.
  await core.putRule(rule('c', 3), 'ann', 'call-1')
  expect(core.rules().version).toBe(2)
  const audit = await core.store.audit(9)
  expect(audit.map(({ what }) => what)).toEqual(['add rule c', 'add rule a'])
}, 20_000)

test('a call that may have happened is made once by its id, at whatever hub and whatever others did since', async () => {
  const hubs = [
    await startHub({ storeUrl: server.url, logLevel: 'silent' }),
    await startHub({ storeUrl: server.url, logLevel: 'silent' }),
  ]
  closers.push(...hubs.map((hub) => () => hub.close()))
  const [one, two] = hubs as [(typeof hubs)[0], (typeof hubs)[0]]
  const call = async (at: typeof one, method: string, path: string, id: string, body?: object): Promise<unknown> => {
    const headers: Record<string, string> = { 'idempotency-key': id }
    if (body !== undefined) headers['content-type'] = 'application/json'
    const answer = await fetch(`${at.url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    return answer.ok ? answer.status : ((await answer.json()) as { code: string }).code
  }
  const whatOf = async (): Promise<string[]> => (await one.core.store.audit(99)).map(({ what }) => what)
  await one.core.putRule(rule('a', 1), 'ann')
  await waitFor(() => idsOf(two.core).includes('a:1'))
  const calls = [
    ['PUT', '/v1/rules/c', 'add', { prefix: 'c', threshold: 3 }],
    ['DELETE', '/v1/rules/a', 'delete', undefined],
    ['POST', '/v1/switch', 'off', { isOff: true }],
  ] as const
  server.child.signal('SIGSTOP')
  const told = await Promise.all(calls.map(([method, path, id, body]) => call(one, method, path, id, body)))
  // The switch holds here at once, and the store gets it.
  expect(told).toEqual(['FB_STORE_UNSURE', 'FB_STORE_UNSURE', 200])
  server.child.signal('SIGCONT')
  await waitFor(() => !alarmIds(one.core).includes('board') && !alarmIds(two.core).includes('board'))
  for (const hub of hubs) {
    for (const [method, path, id, body] of calls) expect(await call(hub, method, path, id, body)).toBeLessThan(300)
  }
  await waitFor(() => hubs.every(({ core }) => core.delivery.isOff))
  expect((await whatOf()).toSorted()).toEqual(['add rule a', 'add rule c', 'delete rule a', 'switch off'])
  // What others have changed since stays as it is, also for a moment at the hub that is asked again.
  expect(await call(two, 'POST', '/v1/switch', 'on', { isOff: false })).toBe(200)
  const turned: boolean[] = []
  for (const hub of hubs) {
    const { core } = hub
    await waitFor(() => !core.delivery.isOff)
    const setOff = core.delivery.setOff.bind(core.delivery)
    core.delivery.setOff = (isOff) => {
      turned.push(isOff)
      setOff(isOff)
    }
    expect(await call(hub, 'POST', '/v1/switch', 'off', { isOff: true })).toBe(200)
    await core.settled()
  }
  expect(turned).not.toContain(true)
  expect(hubs.map(({ core }) => core.delivery.isOff)).toEqual([false, false])
  expect(await call(one, 'DELETE', '/v1/rules/a', 'another')).toBe('FB_NOT_FOUND')
  // An id that cannot be kept is refused: the change would be made twice.
  expect(await call(one, 'PUT', '/v1/rules/d', 'an id', { prefix: 'd', threshold: 3 })).toBe('FB_INPUT_INVALID')
}, 60_000)

test('a switch thrown while the store is away holds, reaches the store with its audit entry, and is not undone', async () => {
  const [one, two] = [await openHub(), await openHub(server.port)]
  await cutOff(one)
  expect(await one.setOff(true, 'ann')).toBe(false)
  expect(one.delivery.isOff).toBe(true)
  await expect(one.setOff(false, 'bob')).rejects.toMatchObject({ code: 'FB_STORE_AWAY' })
  expect(one.delivery.isOff).toBe(true)
  letIn()
  await waitFor(() => two.delivery.isOff)
  expect(one.delivery.isOff).toBe(true)
  expect((await two.store.audit(9)).map(({ who, what }) => `${who} ${what}`)).toEqual(['ann switch off'])
})

test('a switch thrown while the store was away does not come back over the one that switched on after it', async () => {
  const core = await openHub()
  await cutOff(core)
  expect(await core.setOff(true, 'ann')).toBe(false)
  letIn()
  const on = () =>
    core.setOff(false, 'bob').catch((error: { code: string }) => {
      if (error.code !== 'FB_STORE_AWAY') throw error
      return false
    })
  await waitFor(on)
  await core.stored()
  expect(core.delivery.isOff).toBe(false)
  expect((await core.store.load()).isOff).toBe(false)
  const audit = await core.store.audit(9)
  expect(audit.map(({ who, what }) => `${who} ${what}`)).toEqual(['bob switch on', 'ann switch off'])
})

test('a switch can be thrown at a hub that is cut off and believes it thrown, after others switched on', async () => {
  const [one, two] = [await openHub(), await openHub(server.port)]
  await two.setOff(true, 'ann')
  await waitFor(() => one.delivery.isOff)
  await cutOff(one)
  await two.setOff(false, 'bob')
  expect(await one.setOff(true, 'cid')).toBe(false)
  letIn()
  await waitFor(() => two.delivery.isOff)
  expect(one.delivery.isOff).toBe(true)
})

test('history is not doubled by a store that was frozen while it was written', async () => {
  const core = await openHub()
  // Of today: what is older than is kept would be trimmed.
  const event = { at: Date.now(), kind: 'hot', redisClusterId: 'main', key: 'k', ruleId: 'r', text: 'before' } as const
  core.journal.record(event)
  // Redis has the script from here on: what reaches it frozen is carried out when it goes on.
  await core.stored()
  server.child.signal('SIGSTOP')
  core.journal.record({ ...event, text: 'once' })
  // It has been tried, and has timed out.
  await waitFor(() => alarmIds(core).includes('store'), { timeoutMs: 10_000 })
  server.child.signal('SIGCONT')
  await core.stored()
  const events = await core.store.history({ limit: 100 })
  expect(events.filter(({ text }) => text === 'once')).toHaveLength(1)
}, 20_000)
