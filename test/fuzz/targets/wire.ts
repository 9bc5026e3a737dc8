import { isDeepStrictEqual } from 'node:util'
import {
  decodeFrame,
  decodeInvalidation,
  encodeBinaryReport,
  encodeFrame,
  encodeInvalidation,
  encodeJsonFrame,
  formatTextReport,
  parseBinaryReport,
  parseTextReport,
  type Report,
} from '@firebreak/core'
import { TestCore } from '../../../packages/hub/src/testing/test-core.ts'
import { type FuzzTarget, LawBroken } from '../target.ts'

export function sampleReport(now: number): Report {
  const entries = [
    { key: 'product_1', count: 12, writes: 2, bytes: 300 },
    { key: '\u0000b\u00ff', count: 200, writes: 0, bytes: 0 },
    { key: 'ключ:ä,b', count: 1, writes: 1, bytes: 70_000 },
  ]
  const ids = { serviceId: 'shop', hostId: 'host-1', instanceId: 'i1' }
  const sections = [
    { redisClusterId: 'main', entries, totalCount: 213 },
    { redisClusterId: 'other', entries: [], totalCount: 0 },
  ]
  return { collectTs: now, sendTs: now, ...ids, sections }
}

export const invalidationTarget: FuzzTarget = {
  name: 'invalidation',
  seeds: () => [
    encodeInvalidation({ sequence: 10, redisClusterId: 'main', database: -1, kind: 'flush', items: [] }),
    encodeInvalidation({
      sequence: 9,
      redisClusterId: 'main',
      database: 0,
      kind: 'keys',
      items: [{ key: 'plain' }, { key: '', value: Uint8Array.from([0, 255]), ttlMs: 1500 }],
    }),
  ],
  run(input) {
    const decoded = decodeInvalidation(decodeFrame(input))
    const again = decodeInvalidation(decodeFrame(encodeInvalidation(decoded)))
    if (!isDeepStrictEqual(decoded, again)) throw new LawBroken('an invalidation written again is another one')
  },
}

export const binaryReportTarget: FuzzTarget = {
  name: 'report-binary',
  seeds: () => [encodeBinaryReport(sampleReport(1_700_000_000_000))],
  run(input) {
    const report = parseBinaryReport(input)
    const again = parseBinaryReport(encodeBinaryReport(report))
    if (!isDeepStrictEqual(report, again)) throw new LawBroken('a binary report written again is another one')
  },
}

export const textReportTarget: FuzzTarget = {
  name: 'report-text',
  words: ['# ', '\n', '\r\n', ':', ',', '%', '%00', '%FF', '%C3%A4', '#'],
  seeds: () => [
    Buffer.from(formatTextReport(sampleReport(1_700_000_000_000), 1)),
    Buffer.from(formatTextReport(sampleReport(1_700_000_000_000), 2)),
  ],
  run(input) {
    const text = input.toString('utf8')
    const version = text.split('\n')[0]!.split(',').length === 4 ? 1 : 2
    const report = parseTextReport(text, version)
    const again = parseTextReport(formatTextReport(report, version), version)
    if (!isDeepStrictEqual(report, again)) throw new LawBroken('a text report written again is another one')
  },
}

let hub: TestCore | undefined
let session: ReturnType<ReturnType<TestCore['core']['sensorSessions']>['open']> | undefined
let isOpen = false

const hello = () => ({
  serviceId: 'shop',
  hostId: 'host-1',
  instanceId: 'i1',
  agent: 'test/1',
  redisClusterIds: ['main'],
  epoch: '',
  version: 0,
  sentAt: 1_700_000_000_000,
})

const counters = {
  reads: 10, writes: 1, localHits: 5, loads: 1, bypasses: 0, invalidations: 0, flushes: 0, limited: 0, copyReads: 0, droppedReports: 0, errors: 0,
} // biome-ignore format: a row

/** A hub's session with one sensor: each input is one message; a new connection says hello first. */
export const sensorTarget: FuzzTarget = {
  name: 'sensor-frames',
  batch: 128,
  jsonAt: (input) => (input[1] === 2 || input[1] === 20 ? -1 : input.indexOf(0x7b)),
  words: ['{"', '"}', '[[', 'null', '\\u0000', '%', '1e999'],
  seeds: () => [
    encodeJsonFrame('hello', 1, hello()),
    encodeJsonFrame('claim', 2, { redisClusterId: 'main', key: 'a%20b', ruleId: 'r', heat: 12 }),
    encodeJsonFrame('resync', 3, { reason: 'gap' }),
    encodeJsonFrame('status', 4, {
      sentAt: 1_700_000_000_000,
      epoch: 'e',
      version: 1,
      isOff: false,
      counters,
      keys: [
        {
          redisClusterId: 'main',
          key: 'k',
          localHits: 1,
          redisReads: 2,
          bytesSaved: 3,
          limited: 0,
          errors: 0,
          staleMs: 4,
          ruleId: 'r',
        },
      ],
      nodeCounts: { main: 3 },
      watchers: [{ redisClusterId: 'main', kind: 'tracking', state: 'live', detail: '' }],
    }),
    encodeFrame('report', 5, encodeBinaryReport(sampleReport(hub?.clock.now() ?? 0))),
  ],
  async open() {
    hub = await TestCore.open([{ id: 'r', prefix: 'product', threshold: 100, strategy: 'LocalCache' }])
  },
  async close() {
    await hub?.core.close()
    hub = session = undefined
    isOpen = false
  },
  run(input) {
    if (!isOpen) {
      session = hub!.core.sensorSessions().open({
        send() {},
        bufferedBytes: 0,
        onFrame() {},
        onClose() {},
        close() {
          isOpen = false
        },
      })
      isOpen = true
      session.receive(encodeJsonFrame('hello', 1, hello()))
    }
    session!.receive(input)
    hub!.clock.advance(20)
  },
}
