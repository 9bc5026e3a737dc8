import { readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import {
  FakedClock,
  type GuardedChild,
  letTimePass,
  type RedisServer,
  scale,
  seededRandom,
  startRedis,
  startSource,
  temporaryFolder,
  waitFor,
} from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

/** The whole command is loaded at start, which takes long on a busy machine. */
const startMs = 120_000
vi.setConfig({ testTimeout: 300_000 })

const main = new URL('../../packages/cli/src/main.ts', import.meta.url)
const folder = temporaryFolder('limits-service')
const children: GuardedChild[] = []
let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(async () => {
  for (const child of children) await child.stop()
  await redis.stop()
})

const agent = new Agent({ keepAlive: true, maxSockets: 20 })

function call(url: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const method = url.includes('_writeThrough') ? 'POST' : 'GET'
    request(url, { agent, method }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (body += chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
    })
      .on('error', reject)
      .end()
  })
}

function policy(version: number): string {
  // Both results of a version name it, so an answer mixed from two versions would show.
  return `[rules]
rule : [count] [act=ask; uid=+] [time=3600; count=3] [result=5; return=201]
rule : [count] [act=load; uid=+] [time=3600; count=1000000000] [result=2; return=202]
[result]
1 : {"Ret_type":1,"Str_reason":"policy ${version}"}
5 : {"Ret_type":5,"Str_reason":"policy ${version}"}
`
}

async function start(...args: string[]): Promise<{ child: GuardedChild; url: string }> {
  const child = startSource(main, ['limits', '--port', '0', ...args])
  children.push(child)
  const [, url] = await child.printed(/rule service on (http:\S+)\/v1\/limits\//, startMs)
  return { child, url: `${url}/v1/limits` }
}

test('a reload every second under load: no error, and every answer is of one version', async () => {
  const file = join(folder, 'load.conf')
  writeFileSync(file, policy(1))
  const { child, url } = await start('--policy', file)
  let isOver = false
  let answers = 0
  const versions = new Set<number>()
  const callers = Array.from({ length: 8 }, async (_, caller) => {
    while (!isOver) {
      const { status, body } = await call(`${url}/browse?act=load&uid=${caller}&_writeThrough=yes`)
      expect(status).toBe(200)
      const row = JSON.parse(body) as { Version: number; Str_reason: string; Ret_type: number }
      expect(row).toMatchObject({ Ret_type: 1, Str_reason: `policy ${row.Version}` })
      versions.add(row.Version)
      answers++
    }
  })
  const last = scale(4, 11)
  for (let version = 2; version <= last; version++) {
    await letTimePass(1000)
    writeFileSync(file, policy(version))
    child.signal('SIGHUP')
    await waitFor(() => versions.has(version), { what: `version ${version} in an answer` })
  }
  isOver = true
  await Promise.all(callers)
  expect(versions.size).toBe(last)
  // The rule did not change, so its counter continued through all of them.
  const values = await Promise.all(
    Array.from({ length: 8 }, async (_, caller) => {
      const { body } = await call(`${url}/value?rule_no=202&act=load&uid=${caller}`)
      return (JSON.parse(body) as { cache_val: number }).cache_val
    }),
  )
  expect(values.reduce((sum, value) => sum + value, 0)).toBe(answers)
})

test('a broken file is refused with file:line and the old policy stays', async () => {
  const file = join(folder, 'broken.conf')
  writeFileSync(file, policy(1))
  const { child, url } = await start('--policy', file)
  writeFileSync(file, `${policy(2)}nonsense\n`)
  child.signal('SIGHUP')
  await child.printed(/broken\.conf:7: .*the old policy stays/)
  expect(JSON.parse((await call(`${url}/browse?act=ask&uid=1`)).body)).toMatchObject({ Version: 1 })
  const refused = startSource(main, ['limits', 'check', file])
  expect(await refused.exited).toBe(1)
  expect(refused.output()).toContain(`${file}:7: `)
})

test('two services on one Redis admit together exactly the limit, in lists and in sorted sets', async () => {
  for (const kind of ['list', 'zset']) {
    const file = join(folder, `${kind}.conf`)
    writeFileSync(file, `[rules]\nrule : [leak] [uid=+] [time=3600; count=3] [result=2; return=1]\n`)
    const shared = ['--policy', file, '--redis', redis.url, '--leak-storage', kind, '--prefix', `{${kind}}`]
    const services = await Promise.all([start(...shared), start(...shared)])
    const rows = await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const { body } = await call(`${services[index % 2]!.url}/browse?uid=1&_writeThrough=yes`)
        return JSON.parse(body) as { Ret_type: number }
      }),
    )
    expect(rows.filter(({ Ret_type }) => Ret_type === 1)).toHaveLength(3)
  }
})

test('convert turns a policy file into YAML and back', async () => {
  const file = join(folder, 'convert.conf')
  writeFileSync(file, policy(1))
  const there = startSource(main, ['limits', 'convert', file, '--to', 'yaml'])
  expect(await there.exited).toBe(0)
  const yamlFile = join(folder, 'convert.yaml')
  writeFileSync(yamlFile, there.output())
  const back = startSource(main, ['limits', 'convert', yamlFile, '--to', 'text'])
  expect(await back.exited).toBe(0)
  for (const line of readFileSync(file, 'utf8')
    .split('\n')
    .filter((text) => text.startsWith('rule'))) {
    expect(back.output()).toContain(line)
  }
})

test('it refuses to start without a token beyond loopback', async () => {
  const child = startSource(main, ['limits', '--host', '0.0.0.0', '--port', '0'])
  expect(await child.exited).toBe(2)
  expect(child.output()).toContain('token')
  const guarded = await start('--token', 'secret')
  expect((await call(`${guarded.url}/browse?uid=1`)).status).toBe(401)
  expect((await call(`${guarded.url}/alive`)).status).toBe(200)
})

test.each([
  ['in process', []],
  ['on Redis', ['redis']],
])('%s, a machine’s clock that moves by hours admits no more calls over HTTP', async (_, onRedis) => {
  const file = join(folder, 'walk.conf')
  writeFileSync(
    file,
    `[options]
timeZone : UTC
[rules]
rule : [count] [act=count; uid=+] [time=3600; count=10] [result=2; return=1]
rule : [leak] [act=leak; uid=+] [time=3600; count=10] [result=2; return=2]
rule : [count] [act=day; uid=+] [time=86400; count=10] [result=2; return=3]
rule : [base] [act=base; uid=+] [base=5; time=86400; count=10] [result=2; return=4]
`,
  )
  const clock = new FakedClock()
  const args = onRedis.length === 0 ? [] : ['--redis', redis.url, '--prefix', '{walk}']
  const child = clock.startSource(main, ['limits', '--port', '0', '--policy', file, ...args])
  children.push(child)
  const [, url] = await child.printed(/rule service on (http:\S+)\/v1\/limits\//, startMs)
  const acts = ['count', 'leak', 'day', 'base']
  const admitted: Record<string, number> = { count: 0, leak: 0, day: 0, base: 0 }
  const random = seededRandom(19)
  // All readings are within a day and include its boundary.
  for (let step = 0; step < scale(40, 400); step++) {
    clock.set(Math.floor((random() * 2 - 1) * 11 * 3_600_000))
    for (const act of acts) {
      const { status, body } = await call(`${url}/v1/limits/browse?act=${act}&uid=1&_writeThrough=yes`)
      expect(status).toBe(200)
      if ((JSON.parse(body) as { Ret_type: number }).Ret_type === 1) admitted[act]!++
    }
  }
  // A window of an hour is measured on the monotonic clock, a day on the wall clock; Redis only uses its own clock.
  expect([admitted['count'], admitted['leak']]).toEqual([10, 10])
  expect(admitted['day']).toBeGreaterThanOrEqual(10)
  expect(admitted['day']).toBeLessThanOrEqual(onRedis.length === 0 ? 20 : 10)
  expect(admitted['base']).toBeLessThanOrEqual(onRedis.length === 0 ? 30 : 15)
})
