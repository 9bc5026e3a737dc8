import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseRedisUrls } from '@firebreak/core/resp'
import { readRules, readTokens, resolveHubConfig } from '@firebreak/hub'
import { type FuzzTarget, LawBroken } from '../target.ts'

const yamlWords = [
  '- ',
  ': ',
  '&a ',
  '*a',
  '<<: *a',
  '!!binary ',
  '? ',
  '\n',
  '  ',
  '[[[[',
  '{{{{',
  '"',
  "'",
  '---\n',
  '&a [*a]',
  '|\n',
  '>\n',
  '%YAML 9\n',
  '\t',
  '#',
  '!!js/function ',
  'null',
  '0x1',
]
/** The YAML library is slow if every second line is a mistake. */
export const yamlMicrosPerByte = 50
let folder = ''
const folders = {
  async open() {
    folder = mkdtempSync(join(tmpdir(), 'firebreak-fuzz-'))
  },
  async close() {
    rmSync(folder, { recursive: true })
  },
}

/** A file with these bytes, which only its owner can read. */
function file(input: Buffer): string {
  const path = join(folder, 'settings.yaml')
  writeFileSync(path, input, { mode: 0o600 })
  return path
}

/** Any field may contain a token: no error may repeat one. */
function withoutTelling(read: () => unknown): void {
  try {
    read()
  } catch (error) {
    if ((error as Error).message.includes('secret-0123456789')) throw new LawBroken('an error repeats a secret')
    throw error
  }
}

export const settingsTarget: FuzzTarget = {
  name: 'settings',
  words: yamlWords,
  cpuMicrosPerByte: yamlMicrosPerByte,
  ...folders,
  seeds: () => [
    Buffer.from('port: 7070\nhost: 127.0.0.1\nallowedHosts: [a, b]\nlogLevel: info\n'),
    Buffer.from(
      'watchers:\n  - kind: replica\n    redisClusterId: main\n    address: {host: h, port: 6379, tls: true}\n  - kind: aof\n    redisClusterId: main\n    folder: /x\n    maxValueBytes: 5\n',
    ),
    Buffer.from(
      'watchers:\n  - kind: binlog\n    redisClusterId: main\n    redis: redis://h:1\n    connection: {host: h, port: 3306, user: u, password: secret-0123456789}\n    mapping:\n      - {table: shop.product, key: "product_{id}", value: {kind: column, column: name}}\nalarmWebhooks: ["https://x/y"]\n',
    ),
  ],
  run(input) {
    resolveHubConfig({ flags: { config: file(input) }, env: {} })
  },
}

export const tokensTarget: FuzzTarget = {
  name: 'tokens',
  words: [...yamlWords, 'apps:\n', 'people:\n', 'role: admin'],
  cpuMicrosPerByte: yamlMicrosPerByte,
  ...folders,
  seeds: () => [
    Buffer.from(
      'apps:\n  - name: shop\n    token: secret-0123456789-of-the-shop-app-1\n    services: [shop, "cart-*"]\n    clusters: [main]\npeople:\n  - {name: eve, role: viewer, token: secret-0123456789-of-the-person-2}\n  - {name: bob, role: admin, certificate: bob}\n',
    ),
  ],
  run(input) {
    withoutTelling(() => readTokens(file(input)))
  },
}

export const rulesFileTarget: FuzzTarget = {
  name: 'rules-file',
  words: yamlWords,
  cpuMicrosPerByte: yamlMicrosPerByte,
  ...folders,
  seeds: () => [
    Buffer.from('rules:\n  - {id: a, prefix: x, threshold: 5}\n'),
    Buffer.from('- id: a\n  glob: "*"\n  threshold: 1\n'),
  ],
  run(input) {
    readRules(file(input))
  },
}

export const redisUrlTarget: FuzzTarget = {
  name: 'redis-url',
  words: ['redis://', 'rediss://', 'unix://', '@', ':', '/', '%', '[::1]', ',', '?'],
  seeds: () => [Buffer.from('rediss://user:p%40ss@[::1]:6379/3,redis://h'), Buffer.from('unix:///tmp/redis.sock')],
  run(input) {
    parseRedisUrls(input.toString('utf8'))
  },
}
