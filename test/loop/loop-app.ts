// An application of the loop's tests: reads one key all the time and tells over IPC how it went.
import { peek, protect, shieldOf } from '@firebreak/client'
import { Redis } from 'ioredis'

const { redisUrl, hubUrl, key, number } = JSON.parse(process.argv[2]!) as {
  redisUrl: string
  hubUrl: string
  key: string
  number: number
}
const redis = protect(new Redis(redisUrl, { maxRetriesPerRequest: null }), {
  hubs: [hubUrl],
  serviceId: 'loop',
  instanceId: `app-${number}`,
  tableFile: false,
})
redis.on('error', () => {})
let reads = 0
let errors = 0
let slowestMs = 0
let value: string | null = null
setInterval(() => {
  for (let index = 0; index < 3; index++) {
    const started = performance.now()
    redis.get(key).then(
      (got) => {
        reads++
        value = got
        slowestMs = Math.max(slowestMs, performance.now() - started)
      },
      () => errors++,
    )
  }
}, 5)
setInterval(() => {
  const shield = shieldOf(redis)
  process.send!({
    reads,
    errors,
    slowestMs,
    value,
    isLocal: peek(redis, key) !== undefined,
    isOff: shield?.isOff,
    isConnected: shield?.isConnected,
    version: shield?.tableVersion.version,
  })
}, 20)
process.on('message', (message) => {
  if (message === 'forget') {
    reads = 0
    errors = 0
    slowestMs = 0
  }
})
process.on('disconnect', () => process.exit(0))
