import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AlarmView, AlertDelivery, AlertRouteView, AlertShape } from '@firebreak/core'
import { FakeClock, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Hub, startHub } from '../start-hub.ts'
import { MemoryStore } from '../store/memory-store.ts'
import { AlarmBoard } from './alarm-board.ts'
import { AlarmDesk } from './alarm-desk.ts'
import type { AlarmNotice } from './alarm-webhooks.ts'
import { alertRequest } from './alert-shapes.ts'

const alarm = { id: 'board', severity: 'critical', cause: 'the store is <away>', retry: 'tried again' } as const

function deskOf(store = new MemoryStore()) {
  const clock = new FakeClock()
  const board = new AlarmBoard(clock)
  const told: string[] = []
  const send = ({ event, alarm: { id } }: AlarmNotice) => told.push(`${event} ${id}`)
  const desk = new AlarmDesk({ board, store, clock, hubId: 'h', send })
  const pass = (ms: number) => {
    for (let left = ms; left > 0; left -= 1000) {
      clock.advance(1000)
      desk.tick(clock.now())
    }
  }
  return { clock, board, desk, told, pass, store }
}

test('an alarm is pending, then fires, then is inactive; who is told hears of what fired and of its end', () => {
  const { board, desk, told, pass } = deskOf()
  board.raise(alarm)
  pass(5000)
  expect(desk.list()[0]).toMatchObject({ id: 'board', state: 'pending', acknowledged: null, silence: null })
  board.clear('board')
  expect([desk.list(), told]).toEqual([[], []])
  expect(desk.list(true)[0]).toMatchObject({ id: 'board', state: 'inactive' })
  board.raise(alarm)
  pass(11_000)
  expect(desk.list(true)).toMatchObject([{ id: 'board', state: 'firing', endedAt: null }])
  pass(5000)
  board.clear('board')
  expect(told).toEqual(['raised board', 'cleared board'])
  // An ended one is forgotten after a day.
  pass(86_410_000)
  expect(desk.list(true)).toEqual([])
})

test('a silenced alarm is told to nobody until its time is over; an acknowledgement ends with the alarm', async () => {
  const { board, desk, told, pass, clock, store } = deskOf()
  board.raise(alarm)
  const at = clock.now()
  await desk.silence('board', { who: 'ann', at, until: at + 30_000, why: 'we know' })
  await desk.acknowledge('board', { who: 'ann', at })
  pass(20_000)
  expect(told).toEqual([])
  expect(desk.list()[0]).toMatchObject({ silence: { who: 'ann', why: 'we know' }, acknowledged: { who: 'ann' } })
  // Another hub of the store knows of it.
  const other = deskOf(store)
  await other.desk.load()
  other.board.raise(alarm)
  expect(other.desk.list()[0]).toMatchObject({ acknowledged: { who: 'ann' } })
  pass(11_000)
  expect(told).toEqual(['raised board'])
  board.clear('board')
  board.raise(alarm)
  expect(desk.list()[0]).toMatchObject({ acknowledged: null })
})

const notice: AlarmNotice = {
  event: 'raised',
  hubId: 'hub-1',
  at: 1_700_000_000_000,
  alarm: { ...alarm, since: 5, count: 1 },
}
const bodyOf = (shape: AlertShape, secret?: string, given = notice) => {
  const { body, url, headers } = alertRequest({ shape, url: 'https://hooks.example/x?access_token=t', secret }, given)
  return { url, headers, body: JSON.parse(body) as Record<string, never> }
}

test('each receiver gets what it documents', () => {
  expect(bodyOf('slack').body).toEqual({
    text: '*Firebreak critical: board*\nthe store is &lt;away&gt;\ntried again\nhub-1, 2023-11-14T22:13:20.000Z',
  })
  expect(bodyOf('dingtalk').body).toMatchObject({
    msgtype: 'markdown',
    markdown: { title: 'Firebreak critical: board' },
  })
  const ding = new URL(bodyOf('dingtalk', 'SEC1').url).searchParams
  expect([ding.get('access_token'), ding.get('timestamp')]).toEqual(['t', '1700000000000'])
  expect(ding.get('sign')).toBe(createHmac('sha256', 'SEC1').update('1700000000000\nSEC1').digest('base64'))
  const feishu = bodyOf('feishu', 'SEC2').body
  expect(feishu).toMatchObject({ msg_type: 'text', timestamp: '1700000000' })
  expect(feishu['sign']).toBe(createHmac('sha256', '1700000000\nSEC2').update('').digest('base64'))
  expect(bodyOf('teams').body).toMatchObject({
    type: 'message',
    attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', content: { type: 'AdaptiveCard' } }],
  })
  const pager = bodyOf('pagerduty', 'key').body
  expect(pager).toMatchObject({ routing_key: 'key', event_action: 'trigger', payload: { severity: 'critical' } })
  const resolved = bodyOf('pagerduty', 'key', { ...notice, event: 'cleared' }).body
  expect(resolved).toMatchObject({ event_action: 'resolve', dedup_key: pager['dedup_key'] })
  expect(resolved['payload']).toBeUndefined()
  const plain = bodyOf('plain', 'SEC3')
  expect(plain.body).toEqual(notice)
  const sign = createHmac('sha256', 'SEC3').update(JSON.stringify(notice)).digest('hex')
  expect(plain.headers['firebreak-signature']).toBe(`sha256=${sign}`)
})

let hub: Hub
const received: { path: string; body: Record<string, unknown> }[] = []
const answers = new Map<string, [status: number, body: string]>()
const receiver = createServer((request, response) => {
  let body = ''
  request.on('data', (chunk) => (body += chunk))
  request.on('end', () => {
    received.push({ path: request.url!, body: JSON.parse(body) as Record<string, unknown> })
    const [status, text] = answers.get(request.url!.split('?')[0]!) ?? [200, '{"errcode":0,"code":0}']
    response.writeHead(status).end(text)
  })
})

beforeAll(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  hub = await startHub({ logLevel: 'silent' })
})
afterAll(async () => {
  receiver.close()
  await hub.close()
})

async function call<Answer>(method: string, path: string, body?: unknown): Promise<{ status: number; body: Answer }> {
  const headers = body === undefined ? {} : { 'content-type': 'application/json' }
  const response = await fetch(`${hub.url}${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: (text === '' ? undefined : JSON.parse(text)) as Answer }
}

test('a route is set, tested, told, logged and deleted; its address and secret are never shown', async () => {
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
  const put = await call<AlertRouteView>('PUT', '/v1/alert-routes/on-call', {
    shape: 'slack',
    url: `${url}/secret-path`,
  })
  expect(put).toMatchObject({
    status: 200,
    body: { name: 'on-call', shape: 'slack', isEnabled: true, hasSecret: false },
  })
  const refusing = { shape: 'dingtalk', url: `${url}/ding`, secret: 'very-secret', severity: 'critical' }
  await call('PUT', '/v1/alert-routes/ding', refusing)
  const shown = JSON.stringify([(await call('GET', '/v1/alert-routes')).body, (await call('GET', '/v1/audit')).body])
  expect(shown).not.toContain('secret-path')
  expect(shown).not.toContain('very-secret')
  const tested = await call<AlertDelivery>('POST', '/v1/alert-routes/on-call/test')
  expect(tested.body).toMatchObject({ route: 'on-call', event: 'test', isDelivered: true, tries: 1 })
  expect(received.at(-1)).toMatchObject({ path: '/secret-path' })
  answers.set('/ding', [200, '{"errcode":310000,"errmsg":"sign not match"}'])
  const ding = await call<AlertDelivery>('POST', '/v1/alert-routes/ding/test')
  expect(received.some(({ path }) => path.startsWith('/ding?timestamp='))).toBe(true)
  // DingTalk answers 200 and says no in the body.
  expect(ding.body).toMatchObject({ isDelivered: false, detail: 'it answered 310000: sign not match' })
  // Changed without an address: the former one stays.
  await call('PUT', '/v1/alert-routes/on-call', { shape: 'slack', severity: 'critical' })
  await call('POST', '/v1/alert-routes/on-call/test')
  expect(received.at(-1)).toMatchObject({ path: '/secret-path' })
  expect((await call<{ routes: AlertRouteView[] }>('GET', '/v1/alert-routes')).body.routes).toHaveLength(2)
  const { deliveries } = (await call<{ deliveries: AlertDelivery[] }>('GET', '/v1/alert-deliveries')).body
  expect(deliveries[0]).toMatchObject({ route: 'on-call', isDelivered: true })
  expect((await call('DELETE', '/v1/alert-routes/ding')).status).toBe(204)
  expect((await call('POST', '/v1/alert-routes/ding/test')).status).toBe(404)
  for (const [field, body] of [
    ['url', { shape: 'slack' }],
    ['url', { shape: 'slack', url: 'ftp://x' }],
    ['secret', { shape: 'pagerduty' }],
    ['shape', { shape: 'carrier pigeon', url }],
  ] as const) {
    expect((await call<{ field: string }>('PUT', '/v1/alert-routes/x', body)).body.field).toBe(field)
  }
})

test('people acknowledge and silence alarms over the API, each in the audit', async () => {
  hub.core.alarms.raise({ ...alarm, id: 'log' })
  const acknowledged = await call<AlarmView>('PUT', '/v1/alarms/log/acknowledgement')
  expect(acknowledged.body).toMatchObject({ id: 'log', state: 'pending' })
  expect(acknowledged.body.acknowledged?.who).toBeTruthy()
  const silenced = await call<AlarmView>('PUT', '/v1/alarms/log/silence', { forMs: 60_000, why: 'known' })
  expect(silenced.body.silence).toMatchObject({ why: 'known' })
  expect((await call('DELETE', '/v1/alarms/log/silence')).status).toBe(204)
  expect((await call('DELETE', '/v1/alarms/log/acknowledgement')).status).toBe(204)
  expect((await call('PUT', '/v1/alarms/none/acknowledgement')).status).toBe(404)
  hub.core.alarms.clear('log')
  expect((await call<{ code: string }>('PUT', '/v1/alarms/log/acknowledgement')).body.code).toBe('FB_ALARM_ENDED')
  const { alarms } = (await call<{ alarms: AlarmView[] }>('GET', '/v1/alarms?all=true')).body
  expect(alarms.find(({ id }) => id === 'log')).toMatchObject({ state: 'inactive' })
  const entries = await waitFor(async () => {
    const { body } = await call<{ entries: { what: string }[] }>('GET', '/v1/audit?limit=20')
    return body.entries.map(({ what }) => what)
  })
  expect(entries).toEqual(
    expect.arrayContaining(['acknowledge alarm log', 'silence alarm log', 'end the silence of alarm log']),
  )
})
