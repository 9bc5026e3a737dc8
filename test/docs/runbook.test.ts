import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { startHub } from '@firebreak/hub'
import { startChild, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { commands, runCommand } from 'firebreak/cli'
import { expect, onTestFinished, test } from 'vitest'
import { hotKey, playIncident } from '../../examples/flash-sale/src/incident.ts'
import { selfSigned } from '../../packages/hub/src/testing/self-signed.ts'
import { anchorsOf, readPage, root } from './pages.ts'

const runbook = readPage('docs/guides/runbook.md')

test.each([
  ['now.yaml', 'LocalCache'],
  ['limit.yaml', 'RateLimit'],
])(
  'the incident of the demo ends by following the runbook: %s',
  async (file, strategy) => {
    const redis = await startRedis()
    const hub = await startHub({ logLevel: 'fatal', port: 0 })
    const signal = new AbortController()
    const lines: string[] = []
    const story = playIncident({
      ...{ hubUrl: hub.url, redisUrl: redis.url, readsPerSecond: 800, signal: signal.signal },
      say: (line) => lines.push(line),
    })
    try {
      await waitFor(() => lines.some((line) => line.includes('ALARM')), { timeoutMs: 60_000 })
      const [, rule] = runbook.match(new RegExp(`cat > ${file} <<'END'\\n(.*)\\nEND`))!
      const path = join(temporaryFolder('runbook'), file)
      writeFileSync(path, rule!.replace('product_100', `'${hotKey}'`))
      expect(await firebreak(hub.url, 'rules', 'apply', path)).toBe('rule night-fix is applied\n')
      await waitFor(() => lines.some((line) => line.includes('in force')), { timeoutMs: 60_000 })
      await waitFor(
        async () => new RegExp(`${strategy} .*night-fix`).test(await firebreak(hub.url, 'keys', '--state', 'hot')),
        {
          timeoutMs: 60_000,
          what: 'the strategy and the reason to name night-fix',
        },
      )
      await firebreak(hub.url, 'rules', 'remove', 'night-fix')
      expect((await story).undoneAfter).toBeGreaterThan(0)
    } finally {
      signal.abort()
      await story
      await Promise.all([hub.close(), redis.stop()])
    }
  },
  180_000,
)

test('the calls by curl take the first of several hubs, or ask each, also with an authority of its own', async () => {
  const { cert, key } = selfSigned()
  const [certFile, keyFile] = ['ca.pem', 'key.pem'].map((name) => join(temporaryFolder('runbook'), name)) as [
    string,
    string,
  ]
  writeFileSync(certFile, cert)
  writeFileSync(keyFile, key, { mode: 0o600 })
  const token = 'operator-token-0123456789'
  const people = [{ name: 'olga', role: 'operator', token }] as const
  const options = { logLevel: 'fatal', port: 0, tokens: { apps: [], people } } as const
  const hubs = await Promise.all([1, 2].map(() => startHub({ ...options, tls: { certFile, keyFile } })))
  onTestFinished(async () => void (await Promise.all(hubs.map((hub) => hub.close()))))
  // What the page says to set, and nothing else.
  expect(runbook).toContain('NODE_EXTRA_CA_CERTS=ca.pem\nCURL_CA_BUNDLE=ca.pem')
  const away = 'https://127.0.0.1:1'
  const shell = async (commands: string, urls: readonly string[]) => {
    const variables = { FIREBREAK_HUB: urls.join(), FIREBREAK_TOKEN: token, CURL_CA_BUNDLE: certFile }
    const child = startChild('bash', ['-c', commands], { env: { ...process.env, ...variables } })
    await child.exited
    return child.output()
  }
  const urls = hubs.map(({ url }) => url)
  const [look] = runbook.match(/^curl .*v1\/alarms.*$/m)!
  expect(await shell(look, urls)).toBe('{"alarms":[]}')
  const [each] = runbook.match(/^for hub in [\s\S]*?^done$/m)!
  const lines = (await shell(each, [...urls, away])).trim().split('\n')
  expect(lines.slice(0, 2)).toEqual(urls.map((url) => `${url} {"isLive":true}{"isReady":true}`))
  expect(lines[2]).toMatch(/^https:\/\/127.0.0.1:1 curl: \(7\)/)
})

test('the keys of firebreak top that the runbook names are those of its help', async () => {
  const [sentence] = runbook.match(/^Without `--once`[\s\S]*?\n\n/m)!
  const { help } = await commands.find(({ name }) => name === 'top')!.load()
  const letters = Array.from(sentence.matchAll(/`([a-z/])`/g), ([, letter]) => letter!)
  expect(letters.length).toBeGreaterThan(7)
  // After a choice, a question is answered with y.
  for (const letter of letters)
    expect(letter === 'y' || new RegExp(`(^|[ ,\n])${letter} \\w+`).test(help), letter).toBe(true)
})

test('a key that the runbook limits is limited from its first access, until the rule is removed', () => {
  for (const [, text] of runbook.matchAll(/^\{id: night-fix, key: (.*)\}$/gm)) expect(text).toContain('threshold: 1,')
  const limit = runbook.slice(runbook.indexOf('cat > limit.yaml'))
  expect(limit.slice(0, limit.indexOf('```'))).toContain('firebreak rules remove night-fix')
})

/** What a command prints, on both streams. */
async function firebreak(hub: string, ...words: string[]): Promise<string> {
  const out = new PassThrough()
  const signal = new AbortController().signal
  const io = { env: { FIREBREAK_HUB: hub }, stdin: process.stdin, stdout: out, stderr: out, signal }
  expect(await runCommand(commands, words, io)).toBe(0)
  return String(out.read() ?? '')
}

test('every alarm that a hub raises is in the runbook, with a link to its section', () => {
  const ids = alarmIds()
  expect(ids.size).toBeGreaterThan(20)
  const links = [...runbook.matchAll(/\| \[`([a-z-]+:?)[^`]*`\]\(#([\w-]+)\)/g)]
  expect(new Set(links.map(([, id]) => id))).toEqual(ids)
  const anchors = anchorsOf(runbook)
  for (const [, id, anchor] of links) expect(anchors, id).toContain(anchor)
})

test('every page of the console that the runbook and the alerts name exists', () => {
  const source = readFileSync(join(root, 'packages/console/src/page/shell/pages.ts'), 'utf8')
  const titles = Array.from(source.matchAll(/title: '([^']+)'/g), ([, title]) => title!)
  expect(titles.length).toBeGreaterThan(10)
  const alerts = readFileSync(join(root, 'deploy/prometheus/alerts.yaml'), 'utf8')
  const named = [
    ...Array.from(runbook.matchAll(/page \*\*([^*]+)\*\*/g), ([, page]) => page!),
    ...Array.from(runbook.match(/^The console has the same.*$/m)![0].matchAll(/\*\*([^*]+)\*\*/g), ([, page]) => page!),
    ...Array.from(alerts.matchAll(/console's page (\w+)/g), ([, page]) => page!),
  ]
  expect(named.length).toBeGreaterThan(4)
  expect(named.filter((page) => !titles.includes(page))).toEqual([])
})

test('every Prometheus alert that we ship is in the runbook', () => {
  const alerts = readFileSync(join(root, 'deploy/prometheus/alerts.yaml'), 'utf8').matchAll(/- alert: (\w+)/g)
  const names = Array.from(alerts, ([, name]) => name!)
  expect(names.length).toBeGreaterThan(5)
  for (const name of names) expect(runbook).toContain(`\`${name}\``)
})

/** These raise alarms of others; `sale` is in the list below. */
const passedOn = ['alarms/passing-alarms.ts', 'alarms/process-alarms.ts', 'sale/sale-routes.ts']

/** The ids of alarms in the hub's sources; of one with a name in it (`stale:RULE`) what comes before, with its colon. */
function alarmIds(): Set<string> {
  const folder = join(root, 'packages/hub/src')
  const ids = new Set<string>()
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts') || file.endsWith('.test.ts')) continue
    const source = readFileSync(join(folder, file), 'utf8')
    for (const [, id] of source.matchAll(/\.(?:raise|show)\(\{\s*(id(?:: [^,\n]+)?),/g)) {
      const found = idsOf(id === 'id' ? 'id' : id!.slice('id: '.length), source)
      // An alarm whose id this test cannot read would go unnoticed.
      expect(found, `${file}: ${id}`).not.toEqual([])
      for (const one of found) ids.add(one)
    }
    const readable = source.match(/\.(?:raise|show)\(\{\s*id\b/g)?.length ?? 0
    const isPassedOn = passedOn.includes(file.replaceAll('\\', '/'))
    const call = isPassedOn
      ? /(?:alarms|board|passing|\bthis)\??\.(?:raise|show)\(\{/gi
      : /(?:alarms|board|passing|\bthis)\??\.(?:raise|show)\(/gi
    const raises = source.match(call)?.length ?? 0
    expect(readable, `${file}: an alarm whose id does not come first`).toBe(raises)
  }
  for (const room of rooms()) ids.add(`${room}:`)
  return ids
}

/** The packages whose alarms other processes may report. */
function rooms(): string[] {
  const source = readFileSync(join(root, 'packages/hub/src/alarms/process-alarms.ts'), 'utf8')
  const names = source.match(/const processRooms = \[([^\]]+)\]/)![1]!
  return Array.from(names.matchAll(/'(\w+)'/g), ([, room]) => room!)
}

/** What an expression for an id may be: text, a template, or a name that the same file gives one. */
function idsOf(expression: string, source: string): string[] {
  const text = expression.match(/^'([^']+)'$/)?.[1]
  if (text !== undefined) return [text.replace(/:.*/, ':')]
  if (/^`\$\{step\}:/.test(expression)) {
    return Array.from(source.matchAll(/#raise\(\s*'(\w+)'/g), ([, step]) => `${step}:`)
  }
  const start = expression.match(/^`([a-z-]+:)\$\{/)?.[1]
  if (start !== undefined) return [start]
  const name = expression.replace(/^this\./, '')
  const escaped = name.replace('#', '\\#')
  const given = source.match(new RegExp(`(?:const ${escaped} = |get ${escaped}\\(\\): string \\{\\s*return )(.+)`))?.[1]
  return given === undefined || given === expression ? [] : idsOf(given, source)
}
