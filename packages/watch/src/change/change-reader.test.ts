import { expect, test } from 'vitest'
import type { Change } from './change.ts'
import { ChangeReader } from './change-reader.ts'

function changesOf(...commands: string[][]): Change[] {
  const changes: Change[] = []
  const reader = new ChangeReader(16, (change) => changes.push(change))
  for (const command of commands) reader.read(command.map((arg) => new TextEncoder().encode(arg)))
  return changes
}

const keysOf = (change: Change) => (change.kind === 'keys' ? change.keys.map(({ key }) => key) : [])

test('a write names its keys in the database that was selected', () => {
  const changes = changesOf(['SELECT', '3'], ['HSET', 'h', 'f', 'v'], ['select', '0'], ['DEL', 'a', 'b'])
  expect(changes.map((change) => [change.database, keysOf(change)])).toEqual([
    [3, ['h']],
    [0, ['a', 'b']],
  ])
})

test('only written keys count, RENAME and COPY included', () => {
  expect(changesOf(['RENAME', 'a', 'b'], ['COPY', 'a', 'c'], ['SORT', 'l', 'STORE', 'd']).map(keysOf)).toEqual([
    ['a', 'b'],
    ['c'],
    ['d'],
  ])
})

test('a transaction is one change', () => {
  expect(changesOf(['MULTI'], ['SET', 'a', '1'], ['INCR', 'b'], ['EXEC'], ['SET', 'c', '1']).map(keysOf)).toEqual([
    ['a', 'b'],
    ['c'],
  ])
})

test('a small plain value is carried, another is not', () => {
  const changes = changesOf(['SET', 'a', 'small'], ['SET', 'b', 'x'.repeat(17)], ['SET', 'c', 'v', 'PXAT', '1'])
  const values = changes.map((change) => (change.kind === 'keys' ? change.keys[0]!.value : undefined))
  expect(values.map((value) => value && Buffer.from(value).toString())).toEqual(['small', undefined, undefined])
})

test('a command that may change everything is a flush', () => {
  const kinds = changesOf(
    ['FLUSHDB'],
    ['FLUSHALL'],
    ['SWAPDB', '1', '2'],
    ['SOMEMODULE.WRITE', 'x'],
    ['MOVE', 'k', '4'],
  )
  expect(kinds.map(({ kind, database }) => [kind, database])).toEqual([
    ['flush', 0],
    ['flush', -1],
    ['flush', 1],
    ['flush', 2],
    ['flush', -1],
    ['flush', -1],
    ['keys', 0],
  ])
})

test('a command that changes nothing is skipped', () => {
  expect(changesOf(['PING'], ['REPLCONF', 'GETACK', '*'], ['PUBLISH', 'c', 'm'], ['SCRIPT', 'LOAD', 'x'])).toEqual([])
})

test('a value is a copy even if the arguments are Buffers', () => {
  const changes: Change[] = []
  const reader = new ChangeReader(16, (change) => changes.push(change))
  const value = Buffer.from('old')
  reader.read([Buffer.from('SET'), Buffer.from('k'), value])
  value.fill(0)
  const [change] = changes
  expect(change?.kind === 'keys' && change.keys[0]!.value).toEqual(new TextEncoder().encode('old'))
})
