import { execFile, spawn } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findHotByCapture } from '@firebreak/find'
import { type RedisServer, scale, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { accessPlanted, plantedNames } from './planted.ts'

const execute = promisify(execFile)
let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** Calls of GET and SET that the server itself counted. */
async function calls(): Promise<number> {
  const info = await server.cli('INFO', 'commandstats')
  const of = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(info)?.[1] ?? 0)
  return of('get') + of('set')
}

/** Captures while `work` runs; both begin only once the other is ready. */
async function captureWhile(work: () => Promise<unknown>) {
  const ended = new AbortController()
  let commands = 0
  const looking = findHotByCapture({
    ports: [server.port],
    interface: 'lo',
    durationMs: 120_000,
    signal: ended.signal,
    progress: ({ done }) => {
      commands = done
    },
  })
  looking.catch(() => {})
  // tcpdump does not report that it listens: a captured command shows it.
  await waitFor(async () => {
    await server.cli('PING')
    return commands > 0
  })
  const before = await calls()
  const seenBefore = commands
  await work()
  const expected = (await calls()) - before
  // Packets leave the kernel with a delay: wait until all have come, or none for seconds.
  const settled = { at: performance.now(), commands }
  await waitFor(
    () => {
      if (settled.commands !== commands) {
        settled.at = performance.now()
        settled.commands = commands
      }
      const quietMs = performance.now() - settled.at
      return quietMs > (commands >= seenBefore + expected ? 300 : 5000)
    },
    { timeoutMs: 60_000 },
  )
  ended.abort()
  return { finding: await looking, expected }
}

test('under the load of redis-benchmark every command is decoded, as the server counts them', async () => {
  const requests = scale(100_000, 1_000_000)
  const { finding, expected } = await captureWhile(() =>
    execute('redis-benchmark', [
      '-p',
      String(server.port),
      '-t',
      'set,get',
      '-n',
      String(requests),
      '-c',
      '20',
      '-P',
      '8',
      '-r',
      '1000',
      '-q',
    ]),
  )
  const seen = finding.keys.reduce((sum, { accesses }) => sum + accesses!, 0)
  expect(seen).toBeGreaterThan(0)
  expect(expected).toBe(2 * requests)
  const counted = finding.counts!['accesses']!
  expect(Math.abs(counted - expected) / expected, `${counted} of ${expected}`).toBeLessThan(0.001)
  expect(finding.counts).toMatchObject({ dropped: 0, gaps: 0, lostBytes: 0 })
})

test('all planted hot keys are found in order, with their exact counts', async () => {
  const { finding } = await captureWhile(() => accessPlanted(server.port))
  expect(finding.keys.map(({ key }) => key)).toEqual(plantedNames)
  expect(finding.keys.map(({ accesses }) => accesses)).toEqual(plantedNames.map((_name, index) => 2000 - 80 * index))
})

test('a file written by tcpdump is read like the network', async () => {
  const file = join(temporaryFolder('capture'), 'night.pcap')
  const dump = spawn('tcpdump', ['-i', 'lo', '-n', '-U', '-w', file, '-Z', 'root', `tcp port ${server.port}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let output = ''
  dump.stderr.on('data', (chunk) => {
    output += String(chunk)
  })
  await waitFor(() => output.includes('listening'))
  const sent = await accessPlanted(server.port)
  const finding = await waitFor(
    async () => {
      const found = await findHotByCapture({ file, ports: [server.port] }).catch(() => undefined)
      return found?.counts?.['accesses'] === sent ? found : undefined
    },
    { everyMs: 200 },
  )
  dump.kill('SIGINT')
  expect(finding.keys.map(({ key }) => key)).toEqual(plantedNames)
  expect(finding).toMatchObject({ source: [file], topology: 'file' })
})

test('a capture that cannot start says why and what else works', async () => {
  await expect(findHotByCapture({ program: 'no-such-tcpdump' })).rejects.toThrow(/cannot start no-such-tcpdump.*--file/)
  await expect(findHotByCapture({ interface: 'no-such-interface' })).rejects.toMatchObject({
    code: 'FB_CAPTURE_FAILED',
  })
})
