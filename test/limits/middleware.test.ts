import { request as httpRequest } from 'node:http'
import { type GuardedChild, sourceArgs, startChild } from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const program = new URL('./web-server.ts', import.meta.url).pathname

function ask(port: number): Promise<{ status: number; headers: Record<string, unknown>; body: string }> {
  return new Promise((resolve, reject) => {
    httpRequest({ host: '127.0.0.1', port, path: '/', agent: false }, (response) => {
      let body = ''
      response.on('data', (chunk: Buffer) => (body += chunk.toString()))
      response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, body }))
    })
      .on('error', reject)
      .end()
  })
}

describe.each(['express', 'fastify', 'hono', 'koa', 'nest'])('%s', (framework) => {
  let child: GuardedChild
  let ports: Record<string, number>
  beforeAll(async () => {
    child = startChild(process.execPath, [...sourceArgs, program, framework], { stdio: ['pipe', 'pipe', 'pipe'] })
    ports = JSON.parse((await child.printed(/ports (.*)/))[1]!)
  })
  afterAll(() => child.stop())

  test('admits with the draft’s headers, refuses with Retry-After and problem+json', async () => {
    const first = await ask(ports['plain']!)
    expect(first).toMatchObject({ status: 200, body: 'hello' })
    expect(first.headers['ratelimit-policy']).toBe('"hourly";q=1;w=3600')
    expect(first.headers['ratelimit']).toBe('"hourly";r=0;t=3600')
    const second = await ask(ports['plain']!)
    expect(second.status).toBe(429)
    expect(second.headers['retry-after']).toMatch(/^3[56]\d\d$/)
    expect(second.headers['content-type']).toContain('application/problem+json')
    expect(JSON.parse(second.body)).toMatchObject({ status: 429, 'violated-policies': ['hourly'] })
  })

  test('in shadow mode counts and reports but refuses nobody', async () => {
    await ask(ports['shadow']!)
    expect(await ask(ports['shadow']!)).toMatchObject({ status: 200, body: 'hello' })
  })

  test('several limits are one call, and every violated one is named', async () => {
    expect((await ask(ports['several']!)).headers['ratelimit-policy']).toBe('"minute";q=1;w=60, "hour";q=5;w=3600')
    const refused = await ask(ports['several']!)
    expect(JSON.parse(refused.body)).toMatchObject({ 'violated-policies': ['minute'] })
    expect(refused.headers['ratelimit']).toMatch(/^"minute";r=0;t=\d+, "hour";r=4;t=\d+$/)
  })

  test('a pacing limit delays a request; a request without a key passes', async () => {
    const started = performance.now()
    const answers = await Promise.all([ask(ports['paced']!), ask(ports['paced']!)])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(performance.now() - started).toBeGreaterThan(100)
    for (let call = 0; call < 3; call++) expect((await ask(ports['keyless']!)).status).toBe(200)
  })

  test('a request that can never be admitted has no Retry-After', async () => {
    const refused = await ask(ports['costly']!)
    expect(refused.status).toBe(429)
    expect(refused.headers['retry-after']).toBeUndefined()
  })

  test('counts each limit, and keys by the client’s address', async () => {
    child.process.stdin!.write('counts\n')
    const { counts, denied, addressLeft } = JSON.parse((await child.printed(/counts (.*)/))[1]!)
    expect(counts.plain).toEqual({ admitted: 1, refused: 1, shadowed: 0 })
    expect(counts.shadow).toEqual({ admitted: 1, refused: 0, shadowed: 1 })
    expect(denied).toEqual(['everybody'])
    expect(addressLeft).toBe(0)
  })
})
