import { connect } from 'node:net'
import { join } from 'node:path'
import { httpBoundDefaults } from '@firebreak/core/node'
import { flagOf, type SettingTable, settingsSchema, variableOf } from '@firebreak/core/settings'
import { hubSettings } from '@firebreak/hub'
import { type GuardedChild, startSource, temporaryFolder } from '@firebreak/testkit'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { idsSettings } from '../../packages/cli/src/commands/ids/ids-settings.ts'
import { limitsSettings } from '../../packages/cli/src/commands/limits-settings.ts'
import { resolveCoreOptions, unfinishedFrameDefaults } from '../../packages/hub/src/hub-options.ts'
import { respPortDefaults } from '../../packages/ids/src/service/resp-server.ts'

vi.setConfig({ testTimeout: 120_000 })

/** How often the hub looks at its keys is no bound, and what people set of the past is in the store. */
const noBounds = new Set(['tickMs'])
const resp = {
  maxRespConnections: respPortDefaults.maxConnections,
  respIdleTimeoutMs: respPortDefaults.idleTimeoutMs,
  respAuthTimeoutMs: respPortDefaults.authTimeoutMs,
}

test.each<[string, SettingTable, object]>([
  ['hub', hubSettings, { ...resolveCoreOptions({}), ...httpBoundDefaults, ...unfinishedFrameDefaults }],
  ['limits', limitsSettings, httpBoundDefaults],
  ['ids', idsSettings, { ...httpBoundDefaults, ...resp }],
])('every bound of %s has a setting with the same default', (_, table, options) => {
  const bounds = Object.entries(options).filter(([name, value]) => typeof value === 'number' && !noBounds.has(name))
  expect(bounds.length).toBeGreaterThan(3)
  const byDefault = new Map(table.settings.map((setting) => [setting.name, setting.default]))
  expect(Object.fromEntries(bounds.map(([name]) => [name, byDefault.get(name)]))).toEqual(
    Object.fromEntries(bounds.map(([name, value]) => [name, String(value)])),
  )
  const { properties } = settingsSchema(table) as { properties: Record<string, { type: string }> }
  for (const [name] of bounds) expect(properties[name], name).toMatchObject({ type: 'integer' })
})

describe.each<[string, SettingTable, string, (folder: string) => string[]]>([
  ['hub', hubSettings, 'maxConnections', () => []],
  ['limits', limitsSettings, 'maxConnections', () => []],
  ['ids', idsSettings, 'maxConnections', (folder) => [`--database=sqlite:${join(folder, 'ids.db')}`, '--resp-port=0']],
  [
    'ids',
    idsSettings,
    'maxRespConnections',
    (folder) => [`--database=sqlite:${join(folder, 'ids.db')}`, '--resp-port=0'],
  ],
])('firebreak %s', (command, table, name, more) => {
  const children: GuardedChild[] = []
  afterAll(() => Promise.all(children.map((child) => child.stop())))
  const main = new URL('../../packages/cli/src/main.ts', import.meta.url)

  test.each(['flag', 'variable'])(`closes the third connection where a %s sets ${name} to 2`, async (place) => {
    const flags = place === 'flag' ? [`--${flagOf(name)}=2`] : []
    const env = place === 'variable' ? { [variableOf(table, name)]: '2' } : {}
    const args = [command, '--port=0', ...more(temporaryFolder('bounds')), ...flags]
    const child = startSource(main, args, { env: { ...process.env, ...env } })
    children.push(child)
    const scheme = name === 'maxRespConnections' ? 'redis' : 'http'
    const [, port] = await child.printed(new RegExp(`${scheme}://127.0.0.1:(\\d+)`), 60_000)
    const sockets = Array.from({ length: 3 }, () => connect(Number(port), '127.0.0.1').on('error', () => {}))
    await Promise.race(sockets.map((socket) => new Promise((resolve) => socket.on('close', resolve).resume())))
    expect(sockets.filter(({ destroyed }) => destroyed).length).toBe(1)
    for (const socket of sockets) socket.destroy()
  })
})
