import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { resolveSettings } from '@firebreak/core/settings'
import { commands, settingTables } from 'firebreak/cli'
import { expect, test } from 'vitest'
import { readPage, root } from './pages.ts'

const page = readPage('docs/guides/systemd.md')

test.each(['hub', 'proxy'])('the unit of a %s starts it with flags and settings that it has', async (name) => {
  const unit = readPage(`deploy/systemd/firebreak-${name}.service`)
  const [, called, flags] = unit.match(/^ExecStart=\/usr\/bin\/env firebreak (\w+)(.*)$/m)!
  expect(called).toBe(name)
  const command = await commands.find((entry) => entry.name === name)!.load()
  for (const [, flag] of flags!.matchAll(/--([\w-]+)/g)) expect(command.flags).toContain(flag)
  expect(unit).toContain(`EnvironmentFile=/etc/firebreak/${name}.env`)
  const table = settingTables.find((candidate) => candidate.command === name)!
  // Commented lines are examples: each must be a setting too, if not all at once.
  const lines = [...readPage(`deploy/systemd/${name}.env`).matchAll(/^#?([A-Z]\w+)=(.*)$/gm)]
  expect(lines.length).toBeGreaterThan(2)
  for (const [, variable, value] of lines) {
    const { all } = resolveSettings(table, { env: { [variable!]: value! }, readFile: () => ({}), failure })
    expect(all.filter(({ source }) => source !== 'default').map(({ place }) => place)).toEqual([variable])
  }
})

test('a unit may write where its settings put files', () => {
  expect(readPage('deploy/systemd/firebreak-hub.service')).toContain('StateDirectory=firebreak\n')
  expect(readPage('deploy/systemd/hub.env')).toContain('DATA_FOLDER=/var/lib/firebreak\n')
  const proxy = readPage('deploy/systemd/firebreak-proxy.service')
  expect(proxy).toContain('CacheDirectory=firebreak\n')
  expect(proxy).toContain('--table-file /var/cache/firebreak/')
})

test('systemd accepts the units', () => {
  const units = ['hub', 'proxy'].map((name) => join(root, `deploy/systemd/firebreak-${name}.service`))
  const { status, stdout, stderr, error } = spawnSync('systemd-analyze', ['verify', ...units], { encoding: 'utf8' })
  expect(error).toBeUndefined()
  // It reports what it would ignore, such as an unknown field, but still exits with 0.
  expect([status, `${stdout}${stderr}`.split('\n').filter((line) => line.includes('firebreak-'))]).toEqual([0, []])
})

test('the page names every file of the folder', () => {
  for (const file of readdirSync(join(root, 'deploy/systemd'))) expect(page).toContain(file)
})

function failure(place: string, message: string): Error {
  return new Error(`${place}: ${message}`)
}
