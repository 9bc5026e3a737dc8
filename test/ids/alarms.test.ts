import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type GuardedChild, startSource, temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

/** Alarms of ids in a hub's list and at its webhooks: real processes of the command, and a receiver of the notices. */
const main = new URL('../../packages/cli/src/main.ts', import.meta.url)
/** The whole command is loaded at start, which takes long on a busy machine. */
const startMs = 120_000
vi.setConfig({ testTimeout: 300_000 })

interface Notice {
  readonly event: 'raised' | 'cleared'
  readonly alarm: { readonly id: string; readonly severity: string; readonly cause: string }
}
const notices: Notice[] = []
const receiver = createServer((request, response) => {
  let body = ''
  request.on('data', (chunk) => (body += chunk))
  request.on('end', () => {
    notices.push(JSON.parse(body) as Notice)
    response.end()
  })
})
const children: GuardedChild[] = []
const folder = temporaryFolder('ids-alarms')
let hubUrl: string

beforeAll(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/alarms`
  const hub = startSource(main, ['hub', '--port', '0', '--data-folder', folder, '--alarm-webhooks', hook])
  children.push(hub)
  hubUrl = (await hub.printed(/hub (http\S+)/, startMs))[1]!
})
afterAll(async () => {
  await Promise.all(children.map((child) => child.stop()))
  receiver.close()
})

/** An alarm as it stands on the board, and as it came to the webhook. */
async function told(id: RegExp): Promise<Notice> {
  const what = { timeoutMs: 60_000, what: `the alarm ${id}` }
  const notice = await waitFor(() => notices.find(({ event, alarm }) => event === 'raised' && id.test(alarm.id)), what)
  const { alarms } = (await (await fetch(`${hubUrl}/v1/alarms`)).json()) as { alarms: Notice['alarm'][] }
  expect(alarms.find((alarm) => alarm.id === notice.alarm.id)).toMatchObject({ cause: notice.alarm.cause })
  return notice
}

test('ids of the hub itself, whose table is gone', async () => {
  const take = () => fetch(`${hubUrl}/api/segment/get/order`)
  await fetch(`${hubUrl}/api/ids/tags/order`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: '{"step":1}',
  })
  expect((await take()).status).toBe(200)
  const file = new DatabaseSync(join(folder, 'ids.sqlite'))
  file.exec('ALTER TABLE leaf_alloc RENAME TO elsewhere')
  await waitFor(async () => (await take()).status === 503)
  expect((await told(/^ids:FB_IDS_DATABASE_DOWN$/)).alarm.severity).toBe('warning')
  file.exec('ALTER TABLE elsewhere RENAME TO leaf_alloc')
  await waitFor(async () => (await take()).status === 200)
  file.close()
})

test('ids of another process, whose database is away', async () => {
  const ids = startSource(main, [
    ...['ids', '--port', '0', '--resp-port', '0', '--hub', hubUrl],
    ...['--database', 'mysql://nobody@127.0.0.1:1/ids', '--tag', 'order:10'],
  ])
  children.push(ids)
  expect((await told(/^ids:ids\/.*FB_IDS_DATABASE_DOWN$/)).alarm.cause).toContain('ids of ids on ')
  // It ends and reports nothing any more, so its alarms end too.
  await ids.stop()
  await waitFor(() => notices.some(({ event, alarm }) => event === 'cleared' && alarm.id.startsWith('ids:ids/')), {
    timeoutMs: 120_000,
  })
})
