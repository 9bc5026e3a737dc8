import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type RedisServer, sourceArgs, startRedis, temporaryFolder } from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const main = new URL('../../packages/cli/src/main.ts', import.meta.url).pathname
const run = promisify(execFile)
const folder = temporaryFolder('plain-scripts')
let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

describe.each(['token-bucket', 'leaky-bucket'])('firebreak limits script %s', (name) => {
  const file = join(folder, `${name}.lua`)
  const take = async (key: string, ...args: number[]) =>
    (await server.cli('--eval', file, key, ',', ...args.map(String))).split('\n').map((line) => Number(line))

  beforeAll(async () => {
    const { stdout } = await run(process.execPath, [...sourceArgs, main, 'limits', 'script', name])
    expect(stdout).toContain('redis-cli --eval')
    for (const word of ['CAPACITY', 'PER_MS', 'COST', 'Returns']) expect(stdout).toContain(word)
    writeFileSync(file, stdout)
  })

  test('admits up to the capacity, then one every interval, through redis-cli', async () => {
    const level = (used: number) => (name === 'token-bucket' ? 3 - used : used)
    for (let used = 1; used <= 3; used++) {
      const [admitted, shown] = await take(`${name}:a`, 3, 1, 600_000)
      expect([admitted, shown]).toEqual([1, level(used)])
    }
    const [admitted, shown, retryMs, resetMs] = await take(`${name}:a`, 3, 1, 600_000, 1)
    expect([admitted, shown]).toEqual([0, level(3)])
    expect(retryMs).toBeGreaterThan(500_000)
    expect(retryMs).toBeLessThanOrEqual(600_000)
    expect(resetMs).toBeGreaterThan(1_700_000)
    expect(Number(await server.cli('PTTL', `${name}:a`))).toBeGreaterThan(1_700_000)
    // A cost that fits is admitted next to one that does not, and one above the capacity never is.
    expect((await take(`${name}:b`, 3, 1, 600_000, 2))[0]).toBe(1)
    expect((await take(`${name}:b`, 3, 1, 600_000, 2))[0]).toBe(0)
    expect((await take(`${name}:b`, 3, 1, 600_000, 1))[0]).toBe(1)
    expect((await take(`${name}:b`, 3, 1, 600_000, 4))[2]).toBe(-1)
  })

  test('time gives units back, and a call with cost 0 takes nothing', async () => {
    expect((await take(`${name}:c`, 1, 1, 1))[0]).toBe(1)
    // A millisecond later it is full again; redis-cli takes longer to start.
    expect((await take(`${name}:c`, 1, 1, 1))[0]).toBe(1)
    for (let look = 0; look < 3; look++) expect((await take(`${name}:d`, 1, 1, 600_000, 0))[0]).toBe(1)
    expect(await server.cli('EXISTS', `${name}:d`)).toBe('0')
  })

  test('wrong arguments are an error, not a decision', async () => {
    expect(await server.cli('--eval', file, `${name}:e`, ',', '0', '1', '1')).toContain('whole numbers')
    expect(await server.cli('--eval', file, `${name}:e`, ',', 'x', '1', '1')).toContain('whole numbers')
  })
})

test('an unknown script is reported with the names of the known ones', async () => {
  const failing = run(process.execPath, [...sourceArgs, main, 'limits', 'script', 'toString'])
  await expect(failing).rejects.toMatchObject({ stderr: expect.stringContaining('token-bucket, leaky-bucket') })
})
