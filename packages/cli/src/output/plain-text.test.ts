import { type Overview, plainText } from '@firebreak/core'
import { expect, test } from 'vitest'
import { runCommand } from '../command/run-command.ts'
import { renderTop } from '../top/render-top.ts'
import { renderTable } from './table.ts'

const obeyed = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/
const hostile = 'a\u001b]0;owned\u0007b\u009b31m\rc\u202ed'

test('what a terminal would obey is shown as text', () => {
  expect(plainText(hostile)).toBe('a\\x1b]0;owned\\x07b\\x9b31m\\x0dc\\u202ed')
  expect(plainText('über 火 🔥')).toBe('über 火 🔥')
})

test('no cell, key, alarm or error brings a control character to the terminal', async () => {
  expect(renderTable([{ title: 'KEY', text: (row: string) => row }], [hostile])).not.toMatch(obeyed)
  const key = { key: hostile, reason: hostile, ratePerSecond: 1, share: 0.5, sparkline: [1], state: 'hot' }
  const rate = { redis: 1, local: 0, copies: 0, writes: 0, limited: 0 }
  const overview = { verdict: hostile, rate, alarms: [{ cause: hostile }], keys: [key], sensors: { connected: 1 } }
  const screen = { columns: 300, rows: 30, isColored: false }
  expect(renderTop(overview as unknown as Overview, screen)).not.toMatch(obeyed)
  let printed = ''
  const out = { write: (text: string) => (printed += text) } as unknown as NodeJS.WritableStream
  const run = async (): Promise<number> => {
    throw new Error(hostile)
  }
  const entry = { name: 'x', summary: '', load: async () => ({ help: '', run }) }
  const io = { env: {}, stdin: process.stdin, stdout: out, stderr: out, signal: new AbortController().signal }
  await runCommand([entry], ['x'], io)
  expect(printed).toContain('owned')
  expect(printed).not.toMatch(obeyed)
})
