import { execFileSync, spawn } from 'node:child_process'
import { openSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { AlarmView } from '@firebreak/core'
import { type Hub, startHub } from '@firebreak/hub'
import { sourceArgs, startSource, temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'

const hubProcess = new URL('./hub-process.ts', import.meta.url)
const rule = (id: string, glob = 'k*') => ({ id, glob, threshold: 1000 })
let folder: string
const ends: (() => unknown)[] = []

beforeEach(() => {
  folder = join(temporaryFolder('disk'), 'data')
})
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function start(): Promise<Hub> {
  const hub = await startHub({ dataFolder: folder, logLevel: 'silent' })
  ends.push(() => hub.close())
  return hub
}

async function put(url: string, body: ReturnType<typeof rule>): Promise<{ status: number; text: string }> {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(`${url}/v1/rules/${body.id}`, { method: 'PUT', headers, body: JSON.stringify(body) })
  return { status: answer.status, text: await answer.text() }
}

async function alarm(url: string, id: string): Promise<AlarmView | undefined> {
  const { alarms } = (await (await fetch(`${url}/v1/alarms`)).json()) as { alarms: AlarmView[] }
  return alarms.find((found) => found.id === id)
}

test('a full disk: the change is refused and told with its cause, the alarm says what to do, and with room it ends', async () => {
  const options = JSON.stringify({ dataFolder: folder, logLevel: 'silent' })
  const child = startSource(hubProcess, [options])
  ends.push(() => child.stop())
  const [, url] = await child.printed(/listening (\S+)/)
  expect((await put(url!, rule('before'))).status).toBe(200)
  const bound = (bytes: number | 'unlimited') =>
    execFileSync('prlimit', ['--pid', String(child.pid), `--fsize=${bytes}:`])
  // No file of it may grow any more.
  bound(1)
  const refused = await put(url!, rule('large', `${'x'.repeat(60_000)}*`))
  expect(refused.status).toBe(503)
  expect(refused.text).toMatch(/FB_STORE_AWAY.*(the disk is failing or full|the disk is full).*nothing was changed/)
  expect(((await (await fetch(`${url}/v1/rules`)).json()) as { rules: object[] }).rules).toHaveLength(1)
  // The kill switch works all the same, and is written as soon as there is room.
  const headers = { 'content-type': 'application/json' }
  const off = await fetch(`${url}/v1/switch`, { method: 'POST', headers, body: '{"isOff":true}' })
  expect(await off.json()).toEqual({ isOff: true, isStored: false })
  const raised = await waitFor(() => alarm(url!, 'store'))
  expect(raised.cause).toMatch(/^the sqlite store failed: .*(check df|free some room)/)
  bound('unlimited')
  await waitFor(async () => (await alarm(url!, 'store')) === undefined)
  expect((await put(url!, rule('after'))).status).toBe(200)
  await child.stop()
  const again = await start()
  expect(again.core.rules().rules.map(({ id }) => id)).toEqual(['after', 'before'])
  expect(again.core.delivery.isOff).toBe(true)
})

test('a folder that was removed under the hub is told, and nothing is written where nobody would find it', async () => {
  const hub = await start()
  expect((await put(hub.url, rule('a'))).status).toBe(200)
  renameSync(folder, `${folder}-moved`)
  const refused = await put(hub.url, rule('b'))
  expect(refused).toMatchObject({
    status: 503,
    text: expect.stringMatching(/ENOENT.*the folder is missing: create it/),
  })
  expect(await hub.core.setOff(true, 'ann')).toBe(false)
  expect((await waitFor(() => alarm(hub.url, 'store'))).cause).toContain('the folder is missing')
  renameSync(`${folder}-moved`, folder)
  await waitFor(async () => (await alarm(hub.url, 'store')) === undefined)
  expect((await put(hub.url, rule('c'))).status).toBe(200)
  rmSync(folder, { recursive: true })
  // Somebody else's, under the same name.
  const { SqliteStore } = await import('@firebreak/hub')
  await new SqliteStore(join(folder, 'hub.sqlite')).close()
  expect((await put(hub.url, rule('d'))).text).toContain('another file is now under the name')
})

test('a file that another process has locked is told at once, and the hub does not stand still meanwhile', async () => {
  const hub = await start()
  const other = new DatabaseSync(join(folder, 'hub.sqlite'))
  other.exec('BEGIN IMMEDIATE')
  const since = performance.now()
  const refused = await put(hub.url, rule('a'))
  expect(performance.now() - since).toBeLessThan(2000)
  expect(refused).toMatchObject({ status: 503, text: expect.stringContaining('another process has locked the file') })
  expect(await hub.core.setOff(true, 'ann')).toBe(false)
  expect((await waitFor(() => alarm(hub.url, 'store'))).cause).toContain('another process has locked the file')
  other.exec('ROLLBACK')
  other.close()
  await waitFor(async () => (await alarm(hub.url, 'store')) === undefined)
  expect((await hub.core.store.load()).isOff).toBe(true)
})

test('a log that cannot be written does not end the hub, and is told', async () => {
  const options = JSON.stringify({ logLevel: 'info' })
  const args = [...sourceArgs, hubProcess.pathname, options]
  // Every write to it says that there is no room.
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', openSync('/dev/full', 'w')] })
  ends.push(() => child.kill('SIGKILL'))
  let output = ''
  child.stdout!.on('data', (data) => {
    output += data
  })
  const [, url] = await waitFor(() => /listening (\S+)/.exec(output) ?? undefined)
  for (const id of ['a', 'b']) expect((await put(url!, rule(id))).status).toBe(200)
  expect((await waitFor(() => alarm(url!, 'log'))).cause).toMatch(/ENOSPC.*free some room/)
  expect(child.exitCode).toBeNull()
})
