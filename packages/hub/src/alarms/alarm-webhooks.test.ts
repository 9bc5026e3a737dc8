import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { systemTimers } from '@firebreak/core'
import { waitFor } from '@firebreak/testkit'
import { afterEach, expect, test } from 'vitest'
import { AlarmBoard } from './alarm-board.ts'
import { type AlarmNotice, AlarmWebhooks } from './alarm-webhooks.ts'

const retry = { tries: 2, firstMs: 1, mostMs: 1, deadlineMs: Number.POSITIVE_INFINITY, atEnd: 'drop' } as const
const silent = { info() {}, warn() {} }
const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

/** An address that answers with the statuses one after the other, and 200 after them. */
async function receiver(...statuses: number[]) {
  const bodies: AlarmNotice[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      bodies.push(JSON.parse(body) as AlarmNotice)
      response.writeHead(statuses.shift() ?? 200).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => server.close())
  return { bodies, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` }
}

function board(urls: string[]) {
  let time = 0
  const alarms = new AlarmBoard({ now: () => ++time })
  const webhooks = new AlarmWebhooks({ urls, timers: systemTimers, logger: silent, retry })
  alarms.onChange((event, alarm) => webhooks.send({ event, alarm, hubId: 'h', at: 5 }))
  ends.push(() => webhooks.close())
  return { alarms, webhooks }
}

const alarm = { id: 'store', severity: 'critical', cause: 'the disk is full', retry: 'every second' } as const

test('an alarm is posted when it begins and when it ends, not each time that it is raised again', async () => {
  const { bodies, url } = await receiver()
  const { alarms } = board([url])
  for (let count = 1; count <= 5; count++) alarms.raise(alarm)
  alarms.clear('store')
  alarms.clear('store')
  await waitFor(() => bodies.length >= 2)
  expect(bodies.map(({ event, alarm: { id, cause, retry, since } }) => [event, id, cause, retry, since])).toEqual([
    ['raised', 'store', 'the disk is full', 'every second', 1],
    ['cleared', 'store', 'the disk is full', 'every second', 1],
  ])
  expect(alarms.raisedCount).toBe(1)
})

test('an alarm that becomes critical is told once more, and does not count as another', async () => {
  const { bodies, url } = await receiver()
  const { alarms } = board([url])
  for (const severity of ['warning', 'warning', 'critical', 'critical', 'warning'] as const)
    alarms.raise({ ...alarm, severity })
  alarms.clear('store')
  await waitFor(() => bodies.length >= 3)
  expect(bodies.map(({ event, alarm: { severity, since } }) => [event, severity, since])).toEqual([
    ['raised', 'warning', 1],
    ['raised', 'critical', 1],
    ['cleared', 'warning', 1],
  ])
  expect(alarms.raisedCount).toBe(1)
})

test('an address that fails is tried again, in order; another one does not wait for it', async () => {
  const [failing, well] = [await receiver(500, 503), await receiver()]
  const { alarms, webhooks } = board([failing.url, well.url])
  alarms.raise(alarm)
  alarms.clear('store')
  await waitFor(() => webhooks.counts.sent === 4)
  expect(failing.bodies.map(({ event }) => event)).toEqual(['raised', 'raised', 'raised', 'cleared'])
  expect(well.bodies.map(({ event }) => event)).toEqual(['raised', 'cleared'])
})

test('what no try brought out is given up and counted', async () => {
  const { url } = await receiver(500, 500, 500)
  const { alarms, webhooks } = board([url, 'http://127.0.0.1:1/'])
  alarms.raise(alarm)
  await waitFor(() => webhooks.counts.failed === 2)
  expect(webhooks.counts).toEqual({ sent: 0, failed: 2, dropped: 0 })
})
