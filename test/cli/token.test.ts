import { PassThrough } from 'node:stream'
import { temporaryFolder } from '@firebreak/testkit'
import { commands, runCommand } from 'firebreak/cli'
import { expect, test } from 'vitest'

const folder = temporaryFolder('token')

async function token(...words: string[]): Promise<{ out: string; err: string }> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const io = { env: {}, stdin: process.stdin, stdout, stderr, signal: new AbortController().signal }
  expect(await runCommand(commands, ['token', ...words, '--data-folder', folder], io)).toBe(0)
  return { out: String(stdout.read() ?? ''), err: String(stderr.read() ?? '') }
}

/** Until when replaced tokens are accepted, in the words of a rotation. */
const ends = (text: string) => /^Old token until (.+)\.$/m.exec(text)![1]!.split(', ').map(Date.parse)

test('a rotation says until when the old tokens are accepted, and a shorter one shortens the earlier', async () => {
  const { out } = await token('create', '--person', 'root', '--role', 'admin')
  expect(out).toMatch(/^\S+\n$/)
  const [first] = ends((await token('rotate', 'root', '--grace', '24h')).err)
  const second = ends((await token('rotate', 'root', '--grace', '1h')).err)
  expect(second).toHaveLength(2)
  expect(Math.max(...second)).toBeLessThan(first!)
  expect((await token('rotate', 'root', '--grace', '0s')).err).toContain('No other token is accepted.\n')
})

test('help says what the columns and the grace mean', async () => {
  const { out } = await token('--help')
  expect(out).toMatch(/LAST USED: when a process last connected/)
  expect(out).toMatch(/a second rotation with a shorter --grace shortens theirs, and 0s ends all at once/)
  expect(out).toContain('If a variable names\na store and FIREBREAK_HUB a hub, the store is used, and stderr says so')
})
