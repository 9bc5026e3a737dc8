import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { commands } from '../commands/index.ts'
import { type ListedCommand, loadAll } from './command.ts'
import { completionScript, shells } from './completion-script.ts'

const listed = await loadAll(commands)

/** What bash offers for a line whose last word is being written. */
function offered(...words: string[]): string[] {
  const script = `${completionScript('bash', listed)}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _firebreak; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { status, stdout, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, ''])
  return stdout.trim().split('\n')
}

test('bash completes commands, subcommands and flags', () => {
  expect(offered('firebreak', 'pro')).toEqual(['proxy'])
  expect(offered('firebreak', 'help', 'dri')).toEqual(['drill'])
  expect(offered('firebreak', 'rules', 'ap')).toEqual(['apply'])
  expect(offered('firebreak', 'top', '--o')).toEqual(['--once'])
})

test.each(shells)('%s knows every command with its subcommands and flags', (shell) => {
  const script = completionScript(shell, listed)
  for (const { name, subcommands = [], flags = [] } of listed) {
    expect(script).toContain(name)
    for (const word of [...subcommands, ...flags]) expect(script, `${name} ${word}`).toContain(word)
  }
})

test('no summary breaks out of the quotes of zsh or fish', () => {
  const command = {
    name: 'x',
    summary: "the user's: $(touch y) \\",
    subcommands: [],
    flags: [],
  } as unknown as ListedCommand
  expect(completionScript('zsh', [command])).toContain("'x:the user'\\''s\\: $(touch y) \\'")
  expect(completionScript('fish', [command])).toContain("-d 'the user\\'s: $(touch y) \\\\'")
})
