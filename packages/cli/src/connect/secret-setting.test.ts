import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { parseFlags } from '../flags/flag-table.ts'
import { connectionFlags } from './connection-flags.ts'
import { storeOrHub, storePlace } from './store-place.ts'

const folder = temporaryFolder('secret-setting')
function secretFile(name: string, text: string, mode = 0o600): string {
  const file = join(folder, name)
  writeFileSync(file, `${text}\n`, { mode })
  return file
}

function io(env: Record<string, string> = {}) {
  let said = ''
  return { env, stderr: { write: (text: string) => (said += text) !== '' } as never, said: () => said }
}

test('a store is found by the file that the checklist names', () => {
  const file = secretFile('store', 'redis://:secret@store:6379')
  const place = { storeUrl: 'redis://:secret@store:6379' }
  expect(storePlace({}, io({ FIREBREAK_HUB_STORE_URL_FILE: file }))).toEqual(place)
  expect(storePlace({ hub: 'http://hub' }, io({ FIREBREAK_HUB_STORE_URL_FILE: file }))).toBeUndefined()
  const flagged = io()
  expect(storePlace({ 'store-url': place.storeUrl }, flagged)).toEqual(place)
  expect(flagged.said()).toBe(
    '--store-url is visible to every user of this machine (ps); use FIREBREAK_HUB_STORE_URL, or FIREBREAK_HUB_STORE_URL_FILE for a file\n',
  )
})

test('an address without a password is no secret', () => {
  const plain = io()
  storePlace({ 'store-url': 'redis://store:6379' }, plain)
  parseFlags(connectionFlags, ['--url', 'redis://store:6379/2'], plain)
  expect(plain.said()).toBe('')
})

test.each([
  ['url', 'REDIS_URL', 'redis://:secret@host:1'],
  ['password', 'REDISCLI_AUTH', 'secret'],
  ['sentinel-password', 'FIREBREAK_SENTINEL_PASSWORD', 'secret'],
])('--%s of find comes from %s or a file too, and warns as a flag', (flag, variable, value) => {
  const flagged = io()
  expect(parseFlags(connectionFlags, [`--${flag}`, value], flagged).values.get(flag)).toBe(value)
  expect(flagged.said()).toContain(`--${flag} is visible to every user`)
  expect(flagged.said()).not.toContain('secret')
  const quiet = io({ [`${variable}_FILE`]: secretFile(flag, value) })
  expect(parseFlags(connectionFlags, [], quiet).values.get(flag)).toBe(value)
  expect(parseFlags(connectionFlags, [], io({ [variable]: value })).values.get(flag)).toBe(value)
  expect(quiet.said()).toBe('')
})

test('a file that others can read is refused with the command that mends it', () => {
  const open = secretFile('open', 'secret', 0o644)
  expect(() => parseFlags(connectionFlags, [], io({ REDISCLI_AUTH_FILE: open }))).toThrow(`chmod 600 ${open}`)
})

test('where the environment names a store and a hub, the store is used, and stderr says so', () => {
  const env = { FIREBREAK_HUB: 'http://hub:7070', FIREBREAK_HUB_STORE_URL: 'redis://:secret@store:6379' }
  const both = io(env)
  expect(storeOrHub({}, both)).toEqual({ storeUrl: 'redis://:secret@store:6379' })
  expect(both.said()).toBe(
    'Using the store of FIREBREAK_HUB_STORE_URL (redis://:***@store:6379), not the hub of FIREBREAK_HUB; to ask the hub, add --hub URL.\n',
  )
  const asked = io(env)
  expect(storeOrHub({ hub: 'http://hub:7070' }, asked)).toBeUndefined()
  // A flag comes before every variable.
  expect(storeOrHub({ 'data-folder': '/data' }, asked)).toEqual({ dataFolder: '/data' })
  expect(asked.said()).toBe('')
})
