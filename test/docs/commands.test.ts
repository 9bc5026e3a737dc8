import { commands } from 'firebreak/cli'
import { expect, test } from 'vitest'
import { blocksOf, packagePages, readPage, userPages } from './pages.ts'

interface Call {
  readonly place: string
  readonly text: string
  /** What follows `firebreak`. */
  readonly words: readonly string[]
}

test('every firebreak command in the pages exists, with its subcommand and flags', async () => {
  const settings = ['hub', 'proxy'].map((name) => `deploy/systemd/${name}.env`)
  const calls = [...userPages(), ...packagePages(), ...settings].flatMap((page) => [
    ...callsInBlocks(page),
    ...callsInProse(page),
  ])
  expect(calls.length).toBeGreaterThan(80)
  const wrong: string[] = []
  for (const call of calls) {
    const problem = await problemOf(call.words)
    if (problem !== undefined) wrong.push(`${call.place}: ${call.text}: ${problem}`)
  }
  expect(wrong).toEqual([])
})

test.each([
  ['rules aply rules.yaml', 'no subcommand aply'],
  ['config hub', 'no subcommand hub'],
  ['tpo', 'no command tpo'],
  ['top --onse', 'no flag --onse'],
  ['top --once --json', undefined],
  ['hub --port=7070', undefined],
])('a page with "firebreak %s": %s', async (text, problem) => {
  expect(await problemOf(text.split(' '))).toBe(problem)
})

/** Flags that every command takes. */
const everywhere = ['help']

async function problemOf([name, ...rest]: readonly string[]): Promise<string | undefined> {
  if (name === undefined || /^(--?(version|help|v|h)|help|version)$/.test(name)) return undefined
  const command = await commands.find((entry) => entry.name === name)?.load()
  if (command === undefined) return `no command ${name}`
  const { flags = [], subcommands } = command
  for (const word of rest) {
    const flag = word.match(/^--([a-z][\w-]*)/)?.[1]
    if (flag !== undefined && !flags.includes(flag) && !everywhere.includes(flag)) return `no flag --${flag}`
  }
  const [first] = rest
  // A word in capitals is a placeholder, and so is an ellipsis.
  if (subcommands === undefined || first === undefined || !/^[a-z]+$/.test(first)) return undefined
  return subcommands.includes(first) ? undefined : `no subcommand ${first}`
}

/** Calls in blocks for a shell; blocks without a language are mostly such. */
function callsInBlocks(page: string): Call[] {
  return blocksOf(page)
    .filter(({ language }) => ['', 'sh', 'bash'].includes(language))
    .flatMap(({ place, text }) => {
      const lines = text.replace(/\\\n\s*/g, ' ').split('\n')
      return lines.flatMap((line) => callIn(line.replace(/\s#\s.*$/, ''), place) ?? [])
    })
}

function callsInProse(page: string): Call[] {
  const prose = readPage(page).replace(/^\s*```[\s\S]*?^\s*```/gm, '')
  return Array.from(prose.matchAll(/`([^`]*)`/g), ([, code]) => callIn(code!.replace(/\s+/g, ' '), page)).filter(
    (call) => call !== undefined,
  )
}

/** The first `firebreak` of a line, with variables, sudo, npx or npm before it, up to a pipe or its like. */
function callIn(line: string, place: string): Call | undefined {
  const start = /^\s*(?:\$ )?(?:[A-Z_]+=\S* )*(?:sudo )?(?:npx |npm run (?:-s )?)?firebreak(?: --)?(?= [a-z-])/
  const before = line.match(start)?.[0]
  if (before === undefined) return undefined
  const words = line
    .slice(before.length)
    .split(/ [|>&]/)[0]!
    .replace(/'[^']*'|"[^"]*"/g, 'TEXT')
    .trim()
    .split(/\s+/)
  return { place, text: line.trim(), words }
}
