import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { InvalidOptionError } from '@firebreak/core'
import { temporaryFolder } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import type { CommandIo } from '../command/command.ts'
import { runCommand } from '../command/run-command.ts'
import { commands } from './index.ts'

async function firebreak(words: readonly string[], env: Record<string, string> = {}) {
  let out = ''
  let said = ''
  const io = {
    env,
    stdout: { write: (text: string) => (out += text) },
    stderr: { write: (text: string) => (said += text) },
    signal: new AbortController().signal,
  } as unknown as CommandIo
  return { code: await runCommand(commands, words, io), out: () => out, said: () => said }
}

const rowOf = (out: string, name: string): string[] =>
  out
    .split('\n')
    .find((line) => line.startsWith(`${name} `))!
    .split(/ {2,}/)

test('print shows each setting with its value and who gave it, and no secret', async () => {
  const file = join(temporaryFolder('config-print'), 'proxy.yaml')
  writeFileSync(file, 'workers: 3\nmaxClients: 50\n')
  const env = { FIREBREAK_PROXY_MAX_CLIENTS: '60', REDIS_URL: 'redis://:hunter2@r:1', FIREBREAK_TOKEN: 'hunter2' }
  const { code, out } = await firebreak(['config', 'print', 'proxy', '--config', file, '--port', '7001'], env)
  expect(code).toBe(0)
  expect(rowOf(out(), 'port')).toEqual(['port', '7001', 'flag --port'])
  expect(rowOf(out(), 'maxClients')).toEqual(['maxClients', '60', 'env FIREBREAK_PROXY_MAX_CLIENTS'])
  expect(rowOf(out(), 'workers')).toEqual(['workers', '3', 'file'])
  expect(rowOf(out(), 'mode')).toEqual(['mode', 'auto', 'default'])
  expect(rowOf(out(), 'upstream')).toEqual(['upstream', '…', 'env REDIS_URL'])
  expect(out()).not.toContain('hunter2')
})

test('print and errors show no user and no password of an address', async () => {
  const etcd = await firebreak(['config', 'print', 'ids'], { FIREBREAK_IDS_ETCD: 'http://ann:hunter2@etcd:2379' })
  expect(rowOf(etcd.out(), 'etcd')[1]).toBe('…')
  const env = { FIREBREAK_HUB_OTLP_ENDPOINT: 'http://ann:hunter2@collector:4318' }
  const hub = await firebreak(['config', 'print', 'hub'], env)
  expect(rowOf(hub.out(), 'otlpEndpoint')[1]).toBe('http://…@collector:4318')
  const wrong = new InvalidOptionError('database', 'oracle://ann:hunter2@db/ids', 'something else')
  expect(wrong.message).toBe('option database is "oracle://…@db/ids"; it must be something else')
})

test('a file with a misspelt setting is refused with the closest one', async () => {
  const file = join(temporaryFolder('config-misspelt'), 'proxy.yaml')
  writeFileSync(file, 'maxclients: 5\n')
  const { code, said } = await firebreak(['config', 'print', 'proxy', '--config', file])
  expect(code).toBe(2)
  expect(said()).toContain('did you mean maxClients?')
})

test('schema describes the settings file and allows nothing else', async () => {
  const { out } = await firebreak(['config', 'schema', 'hub'])
  const schema = JSON.parse(out())
  expect(schema.additionalProperties).toBe(false)
  expect(schema.properties.port).toMatchObject({ type: 'integer', minimum: 0, maximum: 65_535 })
  expect(schema.properties.logLevel.enum).toContain('info')
})

test.each([
  [['config'], 'config print COMMAND'],
  [['config', 'print'], 'name a command: hub, proxy'],
  [['config', 'print', 'proxi'], 'did you mean proxy?'],
])('%j is wrong usage', async (words, sentence) => {
  const { code, said } = await firebreak(words)
  expect(code).toBe(2)
  expect(said()).toContain(sentence)
})
