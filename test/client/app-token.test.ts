import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { protect, shieldOf, unprotect } from '@firebreak/client'
import { type Hub, resolveHubConfig, startHub } from '@firebreak/hub'
import type { Warning } from '@firebreak/shield'
import { temporaryFolder, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, test } from 'vitest'

const [first, second] = ['first-token-0123456789', 'second-token-0123456789']
const redis = new Redis({ lazyConnect: true })
let folder: string
let hub: Hub
let warnings: Warning[]

/** A file in the test's folder that only its owner can read. */
function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

function acceptOnly(token: string): string {
  return file('tokens.yaml', `apps:\n  - { name: shop, token: ${token}, services: ['*'], clusters: ['*'] }\n`)
}

function shield(options: { token?: string; tokenFile?: string }) {
  warnings = []
  const own = { hubs: [hub.url], serviceId: 'shop', tableFile: false as const }
  return shieldOf(protect(redis, { ...own, ...options, onWarning: (warning) => warnings.push(warning) }))!
}

beforeEach(async () => {
  folder = temporaryFolder('app-token')
  const { options } = resolveHubConfig({ flags: { 'tokens-file': acceptOnly(first) }, env: {} })
  hub = await startHub({ ...options, logLevel: 'fatal', port: 0 })
})
afterEach(async () => {
  unprotect(redis)
  delete process.env['FIREBREAK_TOKEN_FILE']
  await hub.close()
})

test('FIREBREAK_TOKEN_FILE is read, and again once its token was rotated', async () => {
  process.env['FIREBREAK_TOKEN_FILE'] = file('token', `${first}\n`)
  const connected = shield({})
  await waitFor(() => connected.isConnected)
  // The process has the new token before the hub drops the old one, as a rotation does it.
  file('token', second)
  acceptOnly(second)
  await waitFor(() => !connected.isConnected, { what: 'the old token to be refused' })
  await waitFor(() => connected.isConnected, { what: 'the new token to be used' })
  expect(warnings).toEqual([])
})

test('a token file that cannot be read is told once, and read as soon as it is there', async () => {
  const path = join(folder, 'late')
  const connected = shield({ tokenFile: path })
  await waitFor(() => warnings.length > 0)
  expect(warnings[0]).toMatchObject({ kind: 'token-file', message: expect.stringContaining(path) })
  file('late', first)
  await waitFor(() => connected.isConnected)
})

test('a missing token and a wrong one are told apart, and neither is called an unreachable hub', async () => {
  const refusals = async (options: { token?: string }) => {
    const refused = shield(options)
    await waitFor(() => warnings.length > 0)
    // Several refusals in a row: every later one would have been told by now.
    await waitFor(() => refused.trouble.count >= 4)
    unprotect(redis)
    return warnings.map(({ kind, message }) => `${kind}: ${message}`)
  }
  expect(await refusals({})).toEqual([
    `hub-refused: the hub at ${hub.url} requires an app token, and this process has none; set FIREBREAK_TOKEN, FIREBREAK_TOKEN_FILE or the option token`,
  ])
  expect(await refusals({ token: second })).toEqual([
    `hub-refused: the hub at ${hub.url} does not accept the app token of this process: it is unknown there, expired or revoked; give it a current one, from "firebreak token create --app" or "firebreak token rotate"`,
  ])
})

test('a hub that is gone is named in the warning', async () => {
  await hub.close()
  shield({ token: first })
  await waitFor(() => warnings.length > 0)
  expect(warnings[0]!.message).toContain(`no hub can be reached at ${hub.url} (`)
})
