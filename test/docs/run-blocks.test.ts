import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Hub, startHub } from '@firebreak/hub'
import {
  freePort,
  type RedisCluster,
  type RedisSentinel,
  type RedisServer,
  sourceArgs,
  startChild,
  startCluster,
  startEtcd,
  startKafka,
  startNats,
  startRedis,
  startSentinel,
  temporaryFolder,
} from '@firebreak/testkit'
import { transformWithOxc } from 'vite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { wholeOf } from './fragments.ts'
import { blocksOf, type CodeBlock, codePages, packagePages, readPage, root } from './pages.ts'
import { excused } from './runs.ts'
import { writeSession } from './shell-session.ts'

const runner = fileURLToPath(new URL('./block-runner.ts', import.meta.url))
// Under node_modules, where the packages are found as by an application.
const cache = join(root, 'node_modules/.cache')
mkdirSync(cache, { recursive: true })
const folder = mkdtempSync(join(cache, 'firebreak-run-'))
const work = temporaryFolder('docs-run')

const rule = { id: 'product', prefix: 'product_', threshold: 1000, windowMs: 1000, strategy: 'LocalCache' }

let redis: RedisServer
let cluster: RedisCluster
let sentinel: RedisSentinel
let hub: Hub

beforeAll(async () => {
  const hubs = startHub({ initialRules: [rule], logLevel: 'fatal', port: 0 })
  ;[redis, cluster, sentinel, hub] = await Promise.all([startRedis(), startCluster(), startSentinel(), hubs])
  // Needed by a search for hot keys.
  await redis.cli('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lfu')
}, 120_000)
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await hub?.close()
  await Promise.all([redis?.stop(), cluster?.stop(), sentinel?.stop()])
})

const isExcused = ({ place, text }: CodeBlock) =>
  excused.some(({ page, holds }) => place.startsWith(`${page}:`) && text.includes(holds))
const blocks = codePages().flatMap(blocksOf)

test('every excused block exists', () => {
  for (const { page, holds } of excused) {
    const held = blocks.filter(({ place, text }) => place.startsWith(`${page}:`) && text.includes(holds))
    expect(held.length, `${page}: ${holds}`).toBeGreaterThan(0)
  }
})

test('every block of TypeScript and JavaScript in the pages runs, and the client it makes works', async () => {
  const wanted = blocks.filter((block) => ['ts', 'js'].includes(block.language) && !isExcused(block))
  expect(wanted.length).toBeGreaterThan(20)
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  const files = await Promise.all(wanted.map(writeBlock))
  const child = startChild(process.execPath, [...sourceArgs, runner, ...files], {
    cwd: work,
    env: { ...process.env, NODE_OPTIONS: '', FIREBREAK_HUB: hub.url },
  })
  await child.exited
  const results = [...child.output().matchAll(/^(\{"file":.*\})$/gm)].map(
    ([, line]) => JSON.parse(line!) as { file: string; problem?: string },
  )
  const problems = results.filter(({ problem }) => problem !== undefined)
  expect(problems.map(({ file, problem }) => `${wanted[files.indexOf(file)]!.place}: ${problem}`)).toEqual([])
  expect(results, child.output().slice(-2000)).toHaveLength(wanted.length)
}, 240_000)

test('a block that fails, or whose client does not answer, is reported', async () => {
  const wrong = { place: 'wrong.md:1', language: 'ts', text: "throw new Error('as it stands here')" }
  const child = startChild(process.execPath, [...sourceArgs, runner, await writeBlock(wrong)], { cwd: work })
  await child.exited
  expect(child.output()).toContain('as it stands here')
})

/** A block as a module with the tests' addresses, which exports what the runner inspects. */
async function writeBlock(block: CodeBlock): Promise<string> {
  const isCommonJs = block.text.includes('require(')
  const port = await freePort()
  const text = isCommonJs
    ? `${block.text}\nmodule.exports = { made: { ...module.exports } }`
    : `${wholeOf(block, 'run')}\n${exportsOf(block.text, port)}`
  const typescript = addressed(text, port)
  const name = block.place.replaceAll('/', '-').replace(':', '-')
  const options = {
    lang: 'ts',
    decorator: { legacy: true },
    typescript: { onlyRemoveTypeImports: true },
    helpers: { mode: 'External' },
  } as const
  const { code } = isCommonJs ? { code: typescript } : await transformWithOxc(typescript, `${name}.ts`, options)
  const file = join(folder, `${name}.${isCommonJs ? 'cjs' : 'mjs'}`)
  writeFileSync(file, code)
  return file
}

function exportsOf(text: string, port: number): string {
  const has = (name: string) => new RegExp(`^(export )?const ${name}\\b`, 'm').test(text)
  if (text.includes('class AppModule')) {
    return `import 'reflect-metadata'
import { NestFactory } from '@nestjs/core'
const context = await NestFactory.createApplicationContext(AppModule, { logger: false })
export const made = { redis, found: await context.get(Products).find('100') }`
  }
  // A client that the block itself disconnects does not answer any more.
  const names = ['redis', 'app', 'hub'].filter((name) => has(name) && !text.includes(`${name}.disconnect()`))
  const listens = /listen\(/.test(text) ? `, port: ${port}` : ''
  return `export const made = { ${names.join(', ')}${names.length === 0 ? '' : listens} }`
}

/** The addresses of the pages, as those of the tests' servers. */
function addressed(text: string, port: number): string {
  const nodes = cluster.addresses
  return text
    .replaceAll('127.0.0.1:6379', `127.0.0.1:${redis.port}`)
    .replaceAll("host: '127.0.0.1', port: 6379", `host: '127.0.0.1', port: ${redis.port}`)
    .replaceAll('port: 6380', 'port: 0')
    .replaceAll('http://127.0.0.1:7070', hub.url)
    .replaceAll(/new Redis\(\)/g, `new Redis(${redis.port})`)
    .replaceAll(/createClient\(\)/g, `createClient({ url: '${redis.url}' })`)
    .replaceAll(
      /host: '10\.0\.0\.(\d)', port: 7000/g,
      (_, n) => `host: '127.0.0.1', port: ${nodes[Number(n) - 1]!.port}`,
    )
    .replaceAll(/10\.0\.0\.(\d):7000/g, (_, n) => `127.0.0.1:${nodes[Number(n) - 1]!.port}`)
    .replaceAll(
      /host: '10\.0\.0\.(\d)', port: 26379/g,
      (_, n) => `host: '127.0.0.1', port: ${sentinel.sentinels[Number(n) - 1]!.port}`,
    )
    .replaceAll("name: 'mymaster'", `name: '${sentinel.name}'`)
    .replaceAll('listen(3000)', `listen(${port})`)
    .replaceAll('port: 3000', `port: ${port}`)
    .replaceAll('port: 7070', 'port: 0')
    .replaceAll('/var/cache/shop/firebreak', join(work, 'disk-tier'))
}

/** Output that the pages promise. */
const promised: Readonly<Record<string, readonly RegExp[]>> = {
  'docs/guides/first-hour.md': [
    /^Safe: 1 key is hot and handled/m,
    /^product_100 .* hot +LocalCache/m,
    /tracking:live/,
  ],
  'docs/guides/other-languages.md': [
    /^Python reads a kettle$/m,
    /^PHP reads a kettle$/m,
    /^product_100 .* hot +LocalCache/m,
    /^product_100 +main /m,
  ],
  'docs/guides/deploy.md': [/^sign in with [\w-]{32}$/m],
  'docs/guides/three-hubs.md': [/"isDelivered":true/, /alert routes and silences.*\n(.*\n)*restored:.*alert routes/],
}

/** Pages whose shell blocks are one session: what an earlier block set or wrote is there for a later one. */
const shellPages = [...new Set(blocks.filter(isShell).map(({ place }) => place.split(':')[0]!))].filter(
  (page) => !packagePages().includes(page),
)

function isShell(block: CodeBlock): boolean {
  return block.language === 'sh' && !isExcused(block)
}

test('the only command of a package is the one that installs it', () => {
  for (const page of packagePages()) {
    const { name } = JSON.parse(readPage(page.replace('README.md', 'package.json'))) as { name: string }
    const commands = blocksOf(page).filter(({ language }) => language === 'sh')
    expect([page, commands.map(({ text }) => text.split(' ').slice(0, 2).join(' '))]).toEqual([page, ['npm install']])
    expect(commands[0]!.text.split(' ')).toContain(name)
    // Its purpose, in code that runs.
    expect([page, blocksOf(page).some(({ language }) => language === 'ts')]).toEqual([page, true])
  }
})

test('every block says what it is in, and what is to be run is run', () => {
  const known = ['ts', 'js', 'sh', 'yaml', 'json', 'python', 'php', 'go', 'java', 'sql', 'text', 'hex']
  expect(blocks.filter(({ language }) => !known.includes(language)).map(({ place }) => place)).toEqual([])
  // `text` blocks are output: a command in one would not be run.
  const shown = blocks.filter(
    ({ language, place }) => language === 'text' && !place.startsWith('docs/reference/cli.md'),
  )
  expect(
    shown.filter(({ text }) => /^(npx |npm |firebreak |redis-cli |curl )/m.test(text)).map(({ place }) => place),
  ).toEqual([])
})

test.each(shellPages)(
  'the commands of %s run, block after block',
  async (page) => {
    const own = blocks.filter((block) => block.place.startsWith(`${page}:`) && !isExcused(block))
    const names = (text: string) => own.some((block) => isShell(block) && block.text.includes(text))
    // A hub of its own, in which no key of another page is hot.
    const pageHub = await startHub({ initialRules: [rule], logLevel: 'fatal', port: 0 })
    const nats = names('nats://') ? await startNats() : undefined
    const kafka = names('kafka://') ? await startKafka() : undefined
    const etcd = names('etcd://') ? await startEtcd() : undefined
    await report(pageHub.url)
    // A process that is silent for 15 s counts as gone.
    const reporting = setInterval(() => void report(pageHub.url), 1000)
    const session = await writeSession(
      join(work, page.replaceAll('/', '-')),
      own,
      {
        ...{ redis, cluster, hubUrl: pageHub.url },
        ...{ nats: nats?.url ?? '', kafka: kafka?.url ?? '', etcd: `127.0.0.1:${etcd?.port}` },
      },
      (text) => addressed(text, 0),
    )
    const receiver = createServer((_request, response) => response.end('ok')).listen(session.webhookPort, '127.0.0.1')
    const child = startChild('timeout', ['280', 'bash', 'session.sh'], { cwd: session.folder, env: session.env })
    const code = await child.exited
    clearInterval(reporting)
    // Not with expect, which would truncate the output of the commands.
    if (code !== 0) throw new Error(`the session ended with ${code}:\n${child.output().slice(-3000)}`)
    for (const said of promised[page] ?? []) expect(child.output()).toMatch(said)
    receiver.close()
    await Promise.all([pageHub.close(), nats?.stop(), kafka?.stop(), etcd?.stop()])
  },
  300_000,
)

/** What a page assumes to exist: a service and a Redis that have been seen. */
async function report(hubUrl: string): Promise<void> {
  const now = Date.now()
  const body = `# ${now},${now},shop,host-1\n# main\nproduct_100:1\n`
  const answer = await fetch(`${hubUrl}/v1/reports`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'text/plain' },
  })
  expect(answer.status).toBe(204)
}
