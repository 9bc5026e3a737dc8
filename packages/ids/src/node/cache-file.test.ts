import { copyFileSync, cpSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { type CachedWorker, CacheFile } from './cache-file.ts'

const worker: CachedWorker = {
  workerId: 7,
  ip: '10.0.0.7',
  port: 8080,
  owner: 'f2e0c1b4-8f2c-4a54-9a3e-0f7e4a1d7a11',
  timestamp: 1_700_000_000_000,
  mark: 1_700_000_001_000,
  reportedAt: 1_700_000_000_000,
}

function written(): string {
  const path = join(temporaryFolder('cache'), 'deep', 'ids.json')
  const file = CacheFile.open(path)
  expect(file.read().kind).toBe('missing')
  file.write(worker)
  file.write({ ...worker, mark: worker.mark + 1 })
  file.close()
  return path
}

function readAgain(path: string) {
  const file = CacheFile.open(path)
  try {
    return file.read()
  } finally {
    file.close()
  }
}

test('the last record written can be read by the next process, and by a person', () => {
  const path = written()
  expect(readAgain(path)).toEqual({ kind: 'valid', worker: { ...worker, mark: worker.mark + 1 } })
  expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ workerId: 7, mark: worker.mark + 1 })
})

test('a file with a flipped bit, cut short or too long is detected as broken', () => {
  const original = readFileSync(written())
  const end = original.toString().lastIndexOf('}')
  for (let at = 0; at < end; at += 3) {
    const path = written()
    const bytes = readFileSync(path)
    bytes[at] = bytes[at]! ^ 1
    writeFileSync(path, bytes)
    expect(readAgain(path).kind, `byte ${at}`).not.toBe('valid')
  }
  for (const length of [1, 100, 511]) {
    const path = written()
    truncateSync(path, length)
    expect(readAgain(path).kind).toBe('broken')
  }
  const longer = written()
  writeFileSync(longer, Buffer.concat([readFileSync(longer), Buffer.from('x')]))
  expect(readAgain(longer).kind).toBe('broken')
  const garbage = written()
  writeFileSync(garbage, 'x'.repeat(512))
  expect(readAgain(garbage).kind).toBe('broken')
})

test('a copy is not trusted, alone or with its folder', () => {
  const path = written()
  const folder = temporaryFolder('copy')
  copyFileSync(path, join(folder, 'copy.json'))
  expect(readAgain(join(folder, 'copy.json')).kind).toBe('foreign')
  cpSync(join(path, '..'), join(folder, 'all'), { recursive: true })
  expect(readAgain(join(folder, 'all', 'ids.json')).kind).toBe('foreign')
  expect(readAgain(path).kind).toBe('valid')
})

test('a second node on the same file is refused until the first releases it', () => {
  const path = written()
  const first = CacheFile.open(path)
  expect(() => CacheFile.open(path)).toThrow(expect.objectContaining({ code: 'FB_IDS_CACHE_LOCKED' }))
  first.close()
  expect(readAgain(path).kind).toBe('valid')
})
