// One client process of the drill: an ordinary ioredis client, protected, driven by orders over IPC.
import { peek, protect, shieldOf } from '@firebreak/client'
import { type RedisPlace, redisClient } from '../redis-source/redis-client.ts'
import { type DrillNews, type DrillOrder, machineTime } from './drill-messages.ts'

const [hubUrl, instanceId] = process.argv.slice(2) as [string, string]
const place = JSON.parse(process.env['FIREBREAK_DRILL_REDIS']!) as RedisPlace
const redis = protect(redisClient(place), {
  hubs: [hubUrl],
  serviceId: 'drill',
  instanceId,
  tableFile: false,
})
const shield = shieldOf(redis)
const tell = (news: DrillNews) => process.send!(news)
const coldKeys = 500

let key = ''
let timers: NodeJS.Timeout[] = []
let readsAt: number[] = []
let versions = new Map<number, { firstSeenAt: number; lastBegunAt: number }>()
let errors = 0

async function readHot(): Promise<void> {
  const begunAt = machineTime()
  readsAt.push(begunAt)
  try {
    const value = await redis.get(key)
    const version = Number.parseInt(value ?? '-1', 10)
    const seen = versions.get(version)
    if (seen === undefined) versions.set(version, { firstSeenAt: machineTime(), lastBegunAt: begunAt })
    else if (begunAt > seen.lastBegunAt) seen.lastBegunAt = begunAt
  } catch {
    errors++
  }
}

function readCold(): void {
  // GETRANGE, so that Redis' own count of GET is only the hot key.
  redis.getrange(`cold:${Math.floor(Math.random() * coldKeys)}`, 0, -1).catch(() => errors++)
}

/** Calls `action` evenly at this rate; catches up after a late timer. */
function pace(perSecond: number, action: () => void): NodeJS.Timeout {
  const started = performance.now()
  let done = 0
  return setInterval(() => {
    const due = Math.floor(((performance.now() - started) / 1000) * perSecond)
    while (done < due) {
      done++
      action()
    }
  }, 2)
}

function begin(nextKey: string): void {
  end()
  key = nextKey
  readsAt = []
  versions = new Map()
  errors = 0
}

function end(): void {
  for (const timer of timers) clearInterval(timer)
  timers = []
}

/** Checks each millisecond whether a new table has arrived and whether the key is served from memory. */
function lookOut(): NodeJS.Timeout {
  const before = shield?.tableVersion.version ?? 0
  let isDelivered = false
  const timer = setInterval(() => {
    if (!isDelivered && (shield?.tableVersion.version ?? 0) > before) {
      isDelivered = true
      tell({ kind: 'delivered', at: machineTime() })
    }
    if (peek(redis, key) !== undefined) {
      clearInterval(timer)
      tell({ kind: 'effective', at: machineTime() })
    }
  }, 1)
  return timer
}

process.on('message', (order: DrillOrder) => {
  switch (order.kind) {
    case 'drive':
      begin(order.key)
      timers = [pace(order.readsPerSecond, () => void readHot()), pace(order.coldPerSecond, readCold), lookOut()]
      return
    case 'watch':
      begin(order.key)
      timers = [setInterval(() => void readHot(), 1)]
      return
    case 'stop': {
      end()
      const seen = [...versions].map(([version, times]) => ({ version, ...times }))
      tell({ kind: 'notes', readsAt, versions: seen, errors })
      return
    }
  }
})
process.on('disconnect', () => process.exit(0))
await redis.ping()
tell({ kind: 'ready' })
