import { writeFileSync } from 'node:fs'
import {
  defaultLocalCache,
  encodeBinaryReport,
  encodeFrame,
  encodeInvalidation,
  encodeJsonFrame,
  formatTextReport,
  type Report,
  type TableEntry,
} from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'

/**
 * Records what this version says on the wire and keeps in stores, for later versions to be tested against: run it once for
 * each release (`node --conditions=firebreak-source test/versions/record.ts FOLDER`), and never again for one that is out.
 */
const folder = process.argv[2]!
const rule = parseRule({ id: 'r', prefix: 'k', threshold: 100, strategy: { strategy: 'LocalCache', expireTime: 5 } })
const entry = (key: string, strategy: TableEntry['strategy']): TableEntry => ({
  redisClusterId: 'main',
  key,
  strategy,
  ruleId: 'r',
  reason: 'hot because rule `r`: 120 over 1 s ≥ 100',
  since: 1000,
  until: 4_000_000_000_000,
})
const copies = { strategy: 'RedundantKeys', copies: ['k2_1', 'k2_2'], ttlJitterMs: 500 } as const
const limit = {
  strategy: 'RateLimit',
  algorithm: 'tokenBucket',
  limit: 10,
  windowMs: 1000,
  onLimit: 'reject',
  scope: 'process',
} as const
const entries = [entry('k1', defaultLocalCache), entry('k2', copies), entry('k3', limit)]
const ids = { serviceId: 'shop', hostId: 'h', instanceId: 'i' }
const report: Report = {
  collectTs: 1000,
  sendTs: 1001,
  ...ids,
  sections: [{ redisClusterId: 'main', entries: [{ key: 'k1', count: 120, writes: 20, bytes: 4096 }] }],
}
const counters = {
  reads: 1,
  writes: 2,
  localHits: 3,
  loads: 4,
  bypasses: 5,
  invalidations: 6,
  flushes: 7,
  limited: 8,
  copyReads: 9,
  droppedReports: 10,
  errors: 11,
}
const effect = { redisClusterId: 'main', key: 'k1', localHits: 1, redisReads: 2, bytesSaved: 3, limited: 0, errors: 0 }
const watcher = { redisClusterId: 'main', kind: 'tracking', state: 'live', detail: '127.0.0.1:6379' } as const
const pace = { intervalMs: 100, samplingFloor: 1 }
const item = { key: 'k1', value: new Uint8Array([0, 255]), ttlMs: 500 }
const lane = { sequence: 7, redisClusterId: 'main', database: 0, kind: 'keys', items: [item] } as const
const frames: Record<string, Uint8Array> = {
  hello: encodeJsonFrame('hello', 0, {
    ...ids,
    agent: 'client/0.1.0 ioredis',
    redisClusterIds: ['main'],
    epoch: 'e1',
    version: 3,
    sentAt: 1000,
  }),
  report: encodeFrame('report', 5, encodeBinaryReport(report)),
  status: encodeJsonFrame('status', 0, {
    sentAt: 1000,
    epoch: 'e1',
    version: 3,
    isOff: false,
    counters,
    keys: [effect],
    watchers: [watcher],
    nodeCounts: { main: 3 },
  }),
  claim: encodeJsonFrame('claim', 0, { redisClusterId: 'main', key: 'k1', ruleId: 'r', heat: 120 }),
  resync: encodeJsonFrame('resync', 0, { reason: 'a delta from version 3 does not fit' }),
  welcome: encodeJsonFrame('welcome', 1, { hubId: 'hub-1', hubTime: 1000, heartbeatMs: 100, ...pace }),
  snapshot: encodeJsonFrame('snapshot', 2, { epoch: 'e1', version: 3, entries, rules: [rule], isOff: false }),
  delta: encodeJsonFrame('delta', 4, {
    epoch: 'e1',
    from: 3,
    to: 4,
    set: [entry('k4', defaultLocalCache)],
    removed: [{ redisClusterId: 'main', key: 'k3' }],
  }),
  heartbeat: encodeJsonFrame('heartbeat', 0, {
    hubTime: 1000,
    epoch: 'e1',
    version: 4,
    laneHead: 7,
    isOff: false,
    ...pace,
    watched: [{ redisClusterId: 'main', completeAgoMs: 5 }],
  }),
  invalidate: encodeInvalidation(lane),
  refused: encodeJsonFrame('refused', 3, { code: 'FB_HUB_FULL', reason: 'full' }),
}
const audit = { at: 1000, who: 'ann', what: 'add rule r', before: null, after: rule }
const history = { at: 1000, kind: 'hot', redisClusterId: 'main', key: 'k1', ruleId: 'r', text: entries[0]!.reason }
const recording = {
  frames: Object.fromEntries(
    Object.entries(frames).map(([name, bytes]) => [name, Buffer.from(bytes).toString('base64')]),
  ),
  textReports: { 1: formatTextReport(report, 1), 2: formatTextReport(report, 2) },
  tableFile: { hubOffsetMs: 0, snapshot: { epoch: 'e1', version: 3, entries, rules: [rule], isOff: false } },
  // Commands that fill an empty Redis as hubs of this version do; PREFIX stands for the store's prefix.
  redisStore: [
    ['HSET', '{PREFIX:hub}:state', 'epoch', 'e-old', 'versionFloor', '1000', 'isOff', '1', 'rulesVersion', '1'],
    ['HSET', '{PREFIX:hub}:rules', 'r', JSON.stringify(rule)],
    ['LPUSH', '{PREFIX:hub}:history', JSON.stringify(history)],
    ['LPUSH', '{PREFIX:hub}:audit', JSON.stringify(audit)],
    ['HSET', '{PREFIX:hub}:positions', 'binlog of shop', '0-1-5'],
  ],
  relayed: `other ${Buffer.from(encodeInvalidation({ ...lane, sequence: 0 })).toString('base64')}`,
}
writeFileSync(`${folder}/recording.json`, `${JSON.stringify(recording, null, 1)}\n`)
