import { encodeBinaryReport, encodeFrame, systemRuntime } from '@firebreak/core'
import { reportKeyId, reportKeyOf, signatureHeaders, signReport } from '@firebreak/core/node'
import { expect, test } from 'vitest'
import { CredentialBook } from '../access/credential-book.ts'
import { fixedCredentials, type HubTokens } from '../access/fixed-credentials.ts'
import { MemoryStore } from '../store/memory-store.ts'
import type { Collector } from './collector.ts'
import { StreamedReports } from './streamed-reports.ts'

const token = 'shops-token-4711-0815'
const now = 1_800_000_000_000

async function take(sentAt: number, tokens: HubTokens) {
  const counted: unknown[] = []
  const refused: string[] = []
  const collector = {
    collectBinary: (...given: unknown[]) => counted.push(given),
    countRefusal: (cause: string) => refused.push(cause),
  } as unknown as Collector
  const [store, logger] = [new MemoryStore(), { info() {}, warn() {} }]
  const fixed = fixedCredentials(tokens, now)
  const book = new CredentialBook({ store, runtime: systemRuntime, logger, audit: async () => {}, fixed })
  await book.open()
  const clock = { ...systemRuntime.clock, now: () => now }
  const reports = new StreamedReports({ collector, maxReportAgeMs: 10_000, clock, book })
  const process = { serviceId: 'shop', hostId: 'h', instanceId: 'i' }
  const sections = [{ redisClusterId: 'main', entries: [{ key: 'k', count: 1, writes: 0, bytes: 0 }] }]
  const data = encodeFrame('report', 1, encodeBinaryReport({ collectTs: sentAt, sendTs: sentAt, ...process, sections }))
  const reportKey = reportKeyOf(token)
  const headers: Record<string, string> = {
    [signatureHeaders.key]: reportKeyId(reportKey),
    [signatureHeaders.signature]: signReport(reportKey, data),
  }
  reports.take({ data, ageMs: 0, by: 'nats', header: (name) => headers[name] })
  return { counted: counted.length, refused }
}

const signed: HubTokens = { apps: [{ name: 'shop', token }], people: [] }

test('a signed report that is played again later counts no more, whatever the hub has forgotten', async () => {
  expect(await take(now - 60_000, signed)).toEqual({ counted: 1, refused: [] })
  expect(await take(now + 60_000, signed)).toEqual({ counted: 1, refused: [] })
  expect(await take(now - 600_000, signed)).toEqual({ counted: 0, refused: ['expired'] })
  expect(await take(now + 600_000, signed)).toEqual({ counted: 0, refused: ['expired'] })
})

test('where there are no tokens, clocks may be as far apart as they like', async () => {
  expect(await take(now - 600_000, { apps: [], people: [] })).toEqual({ counted: 1, refused: [] })
})
