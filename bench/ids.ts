import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { mariadbSegmentStore, SegmentIds, SnowflakeNode, sqliteSegmentStore } from '@firebreak/ids'
import { FaultProxy, startMariadb, startSource, temporaryFolder } from '@firebreak/testkit'
import { createPool } from 'mysql2/promise'
import { Bench, interleaved, median, medianRatio, quantile, rounds, say } from './harness/bench.ts'
import { workMs } from './harness/work-time.ts'
import { httpRate } from './ids-parts/http-load.ts'
import { duplicatesOf, peers } from './ids-parts/peers.ts'
import { respRate } from './ids-parts/resp-load.ts'

/**
 * How fast ids come: snowflakes against their own limit (4,096 a millisecond) and against packages of npm, whose
 * duplicates are counted; segments from memory; the service over HTTP against a bare `node:http`, and over RESP; and
 * whether a database that takes two seconds is felt.
 */
const bench = new Bench('ids')
const folder = temporaryFolder('bench-ids')

say('snowflake: a tight loop, with the mark on disk')
const perRound = 1_000_000
const ids = new BigUint64Array(5 * perRound)
const node = await SnowflakeNode.start({ workerId: 1, cacheFile: join(folder, 'worker.json') })
const speeds: number[] = []
for (let start = 0; start < ids.length; start += perRound) {
  const startedAt = workMs()
  for (let index = start; index < start + perRound; index++) ids[index] = node.nextBigInt()
  speeds.push((perRound / (workMs() - startedAt)) * 1000)
}
const note = `best of five rounds, median ${Math.round(median(speeds)).toLocaleString('en-US')}; the limit is 4,096,000`
bench.report({ id: 'snowflake-per-second', value: Math.max(...speeds), unit: 'ids/s', note })
bench.report({ id: 'snowflake-duplicates', value: duplicatesOf(ids), unit: `ids of ${ids.length}` })
const texts: number[] = []
for (let round = 0; round < 3; round++) {
  const startedAt = workMs()
  for (let index = 0; index < 1_000_000; index++) node.next()
  texts.push(1e9 / (workMs() - startedAt))
}
bench.report({ id: 'snowflake-text-per-second', value: Math.max(...texts), unit: 'ids/s' })
await node.close()

const peerIds = new BigUint64Array(rounds(300_000, 1_000_000))
const peerLimitMs = rounds(1500, 10_000)
for (const peer of peers) {
  say(`peer: ${peer.name}`)
  const next = peer.make()
  const startedAt = workMs()
  let made = 0
  // Some are slow: they are stopped, and judged by what they made.
  while (made < peerIds.length && workMs() - startedAt < peerLimitMs) {
    for (let index = 0; index < 1000; index++) peerIds[made++] = next()
  }
  const speed = (made / (workMs() - startedAt)) * 1000
  const duplicates = duplicatesOf(peerIds.subarray(0, made))
  bench.report({ id: `${peer.name}-per-second`, value: speed, unit: 'ids/s', note: `${duplicates} duplicates` })
  bench.report({ id: `${peer.name}-duplicates`, value: duplicates, unit: `ids of ${made}` })
}

say('segment: from memory, SQLite behind it')
const segments = await SegmentIds.start({ stores: [sqliteSegmentStore(join(folder, 'segments.db'))] })
await segments.addTag('bench', { step: 100_000 })
const segmentCount = rounds(2_000_000, 5_000_000)
const segmentSpeeds = await interleaved(rounds(3, 5), {
  taken: async () => {
    const startedAt = workMs()
    for (let index = 0; index < segmentCount; index++) segments.take('bench') ?? (await segments.next('bench'))
    return (segmentCount / (workMs() - startedAt)) * 1000
  },
  awaited: async () => {
    const startedAt = workMs()
    for (let index = 0; index < segmentCount; index++) await segments.next('bench')
    return (segmentCount / (workMs() - startedAt)) * 1000
  },
})
bench.report({ id: 'segment-per-second', value: median(segmentSpeeds.taken), unit: 'ids/s' })
bench.report({ id: 'segment-awaited-per-second', value: median(segmentSpeeds.awaited), unit: 'ids/s' })
await segments.close()

say('service: HTTP against a bare node:http, and RESP')
const bare = startSource(fileURLToPath(new URL('./ids-parts/bare-http.ts', import.meta.url)))
const service = startSource(
  fileURLToPath(new URL('../packages/cli/src/main.ts', import.meta.url)),
  ['ids', '--port', '0', '--resp-port', '0', '--worker-id', '2', '--tag', 'bench:100000'],
  { cwd: folder },
)
const barePort = Number((await bare.printed(/port (\d+)/))[1])
const [, httpText, respText] = await service.printed(/ids: http:\/\/127\.0\.0\.1:(\d+), redis:\/\/127\.0\.0\.1:(\d+)/)
const [httpPort, respPort] = [Number(httpText), Number(respText)]
// Many short turns: a noisy moment then spoils few of the ratios.
const durationMs = rounds(250, 800)
const http = await interleaved(rounds(15, 25), {
  bare: () => httpRate(barePort, '/', durationMs),
  segment: () => httpRate(httpPort, '/api/segment/get/bench', durationMs),
  snowflake: () => httpRate(httpPort, '/api/snowflake/get/bench', durationMs),
})
const to = 'bare node:http "ok"'
bench.report({ id: 'http-vs-bare', ratio: medianRatio(http.segment, http.bare), of: 'GET /api/segment/get/TAG', to })
bench.report({
  id: 'http-snowflake-vs-bare',
  ratio: medianRatio(http.snowflake, http.bare),
  of: 'GET /api/snowflake/get/KEY',
  to,
})
bench.report({ id: 'http-per-second', value: median(http.segment), unit: 'requests/s' })
const resp: number[] = []
for (let round = 0; round < 7; round++) resp.push(await respRate(respPort, ['INCR', 'bench'], durationMs))
bench.report({ id: 'resp-per-second', value: median(resp), unit: 'ids/s', note: 'INCR, pipelined' })
await Promise.all([bare.stop(), service.stop()])

say('a database that takes 2 s for a segment: four statements, half a second each')
const mariadb = await startMariadb()
const proxy = await FaultProxy.start(mariadb.port)
const open = async (port: number, tag: string) => {
  const pool = createPool({ host: '127.0.0.1', port, user: 'root', database: 'test' })
  const opened = await SegmentIds.start({ stores: [mariadbSegmentStore(pool)], onAlarm: ({ message }) => say(message) })
  await opened.addTag(tag, { step: 20_000 })
  await opened.next(tag)
  return opened
}
const fast = await open(mariadb.port, 'fast')
const slow = await open(proxy.port, 'slow')
proxy.faults.serverDelayMs = 500
const fastMs: number[] = []
const slowMs: number[] = []
const get = async (from: SegmentIds, tag: string, into: number[]) => {
  const startedAt = workMs()
  await from.next(tag)
  into.push(workMs() - startedAt)
}
// Some 4,000 a second, past the end of the first segment, whose successor is two seconds on its way.
const wanted = rounds(32_000, 120_000)
for (let turn = 0; slowMs.length < wanted; turn++) {
  // The first get after the pause is slower: they take turns at it.
  await (turn % 2 === 0 ? get(fast, 'fast', fastMs) : get(slow, 'slow', slowMs))
  for (let index = 0; index < 20; index++) {
    await get(fast, 'fast', fastMs)
    await get(slow, 'slow', slowMs)
  }
  await new Promise((resolve) => setTimeout(resolve, 4))
}
const [fastP99, slowP99] = [quantile(fastMs, 0.99), quantile(slowMs, 0.99)]
const status = slow.buffers().find(({ tag }) => tag === 'slow')
bench.report({ id: 'segment-p99-fast-database', value: fastP99 * 1000, unit: 'µs' })
bench.report({
  id: 'segment-p99-slow-database',
  value: slowP99 * 1000,
  unit: 'µs',
  note: `slowest ${Math.max(...slowMs).toFixed(2)} ms, the last load took ${status!.loadMs} ms, ${status!.loads} loads`,
})
bench.report({ id: 'segment-p99-slow-vs-fast', ratio: slowP99 / fastP99, of: 'database of 2 s', to: 'fast database' })
proxy.faults.serverDelayMs = 0
await Promise.all([fast.close(), slow.close()])
await proxy.close()
await mariadb.stop()
bench.done({ mariadb: '10.11' })
