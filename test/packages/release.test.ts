import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { version } from '@firebreak/core'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const script = join(root, 'scripts/release.mjs')

interface Release {
  nextVersion(current: string, asked: string): string
  releaseNotes(changelog: string): string
  releaseFiles(version: string, date: string): [file: string, text: string][]
  publishOrder(): string[]
  publishArguments(tarball: string, version: string): string[]
}
const release = (await import(pathToFileURL(script).href)) as Release

const tracked = () => execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trim().split('\n')

test.each([
  ['0.1.0', 'patch', '0.1.1'],
  ['0.1.9', 'minor', '0.2.0'],
  ['0.9.9', 'major', '1.0.0'],
  ['1.0.0', '1.1.0-beta.1', '1.1.0-beta.1'],
  ['1.1.0-beta.1', '1.1.0', '1.1.0'],
  ['1.1.0-beta.1', '1.1.0-beta.2', '1.1.0-beta.2'],
  ['1.1.0-beta.9', '1.1.0-beta.10', '1.1.0-beta.10'],
  ['1.1.0-beta.2', '1.1.0-rc.1', '1.1.0-rc.1'],
  ['1.1.0-beta', '1.1.0-beta.1', '1.1.0-beta.1'],
  ['1.1.0-beta.1', 'patch', '1.1.0'],
  ['1.1.0-beta.1', 'minor', '1.1.0'],
  ['1.1.0-beta.1', 'major', '2.0.0'],
  ['1.1.1-beta.1', 'minor', '1.2.0'],
])('%s by %s becomes %s', (current, asked, next) => {
  expect(release.nextVersion(current, asked)).toBe(next)
})

test.each([
  ['1.1.0-beta.2', '1.1.0-beta.1'],
  ['1.1.0-beta.10', '1.1.0-beta.9'],
  ['1.1.0-rc.1', '1.1.0-beta.2'],
  ['1.1.0', '1.1.0-beta.1'],
  ['1.1.0-beta.1', '1.1.0-beta.1'],
])('%s is not followed by %s', (current, asked) => {
  expect(() => release.nextVersion(current, asked)).toThrow('is not newer')
})

test.each(['0.0.9', '0.1.0', 'latest', '1.2'])('a version that is not newer or is none is refused: %s', (asked) => {
  expect(() => release.nextVersion('0.1.0', asked)).toThrow(asked)
})

test('a new version is written wherever the old one was', () => {
  const files = new Map(release.releaseFiles('7.7.7', '2030-01-02'))
  // A version of our own stands in manifests as "version" and as the range of another package of ours.
  const holds = (text: string) =>
    new RegExp(
      `"version": "${version}"|firebreak(/\\w+)?": "${version}"|^(appV|v)ersion: ${version}|version = '${version}'`,
      'm',
    ).test(text)
  const places = tracked().filter((file) => /(package\.json|Chart\.yaml|version\.ts)$/.test(file))
  const holding = places.filter((file) => holds(readFileSync(join(root, file), 'utf8')))
  expect(holding.length).toBeGreaterThan(15)
  for (const file of holding) expect([file, holds(files.get(file) ?? '')]).toEqual([file, false])
  for (const file of holding) expect(files.get(file)).toContain('7.7.7')
  expect(files.get('CHANGELOG.md')).toMatch(/^## Unreleased\n\n## 7\.7\.7 \(2030-01-02\)\n/m)
  const { packages } = JSON.parse(files.get('package-lock.json')!) as { packages: Record<string, { version: string }> }
  expect(packages['packages/core']!.version).toBe('7.7.7')
})

test('the notes are the Unreleased part of the changelog, which must not be empty', () => {
  expect(release.releaseNotes('# Log\n\n## Unreleased\n\n- new\n\n## 0.1.0\n\n- old\n')).toBe('- new')
  expect(release.releaseNotes('# Log\n\n## Unreleased\n\n- first\n')).toBe('- first')
  expect(() => release.releaseNotes('# Log\n\n## Unreleased\n\n## 0.1.0\n\n- old\n')).toThrow('Unreleased')
})

test('packages are published after their dependencies, with provenance, and pre-releases not as latest', () => {
  const order = release.publishOrder()
  const publicRooms = readdirSync(join(root, 'packages')).filter((room) => room !== 'testkit')
  expect(order).toHaveLength(publicRooms.length)
  expect(order.at(0)).toBe('@firebreak/core')
  expect(order.indexOf('@firebreak/shield')).toBeLessThan(order.indexOf('@firebreak/client'))
  expect(order.indexOf('@firebreak/client')).toBeLessThan(order.indexOf('firebreak'))
  expect(release.publishArguments('x.tgz', '1.0.0').join(' ')).toContain('--provenance --access public --tag latest')
  expect(release.publishArguments('x.tgz', '1.0.0-rc.1').at(-1)).toBe('next')
})

test('a dry run prints version, files, commands and notes, and changes nothing', () => {
  const before = execFileSync('git', ['status', '--porcelain'], { cwd: root, encoding: 'utf8' })
  const { status, stdout } = spawnSync(process.execPath, [script, 'minor', '--dry-run'], { encoding: 'utf8' })
  expect(status).toBe(0)
  for (const part of ['Version 0.2.0', 'packages/core/src/version.ts', 'tag v0.2.0', '--provenance', '**The loop**'])
    expect(stdout).toContain(part)
  expect(execFileSync('git', ['status', '--porcelain'], { cwd: root, encoding: 'utf8' })).toBe(before)
})

test('a wrong version exits with 2 and the usage', () => {
  const { status, stderr } = spawnSync(process.execPath, [script, 'latest'], { encoding: 'utf8' })
  expect([status, stderr]).toEqual([2, expect.stringContaining('usage: npm run release')])
})
