import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const main = fileURLToPath(new URL('main.ts', import.meta.url))

interface Figures {
  readonly target: string
  readonly inputs: number
  readonly perSecond: number
  readonly kept: number
  readonly blocks: number
}

/** Runs the program in a process of its own, with a heap that a leak would fill. */
function fuzz(...args: string[]): Promise<{ code: number | null; figures: Figures[]; told: string }> {
  const flags = ['--max-old-space-size=256', '--disable-warning=ExperimentalWarning', '--conditions=firebreak-source']
  const child = spawn(process.execPath, [...flags, main, '--json', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  let told = ''
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    told += chunk.toString()
  })
  return new Promise((resolve) => {
    child.on('close', (code) => {
      const figures = out
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Figures)
      resolve({ code, figures, told })
    })
  })
}

test('20 s of mutated inputs through every parser: no unexpected error, no crash, no hang, bounded memory', async () => {
  const { code, figures, told } = await fuzz('--seconds', '20', '--together', '--seed', '1')
  process.stdout.write(told)
  expect(told).not.toContain('FAILED')
  expect(code).toBe(0)
  expect(figures.length).toBeGreaterThanOrEqual(22)
  for (const { target, inputs } of figures) expect(inputs, target).toBeGreaterThan(20)
}, 400_000)

test('a parser that breaks the rules is found, its input minimised and reported with a command that runs it again', async () => {
  const { code, told } = await fuzz('self-check', '--seconds', '20', '--seed', '2')
  expect(code).toBe(1)
  expect(told).toMatch(/FAILED: self-check, seed 2: TypeError/)
  const input = /again: npm run fuzz -- self-check --input (\S+)/.exec(told)![1]!
  expect(Buffer.from(input, 'base64').toString()).toBe('ab{')
  expect((await fuzz('self-check', '--input', input)).told).toContain('FAILED: TypeError')
}, 400_000)
