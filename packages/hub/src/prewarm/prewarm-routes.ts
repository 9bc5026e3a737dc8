import { describeValue, keyText, parseKeyText } from '@firebreak/core'
import { z } from 'zod'
import { ApiProblem } from '../errors.ts'
import type { ApiRoute } from '../http/api-route.ts'
import { parseSchedule } from '../schedule/parse-schedule.ts'
import { expandKeys, parseAt } from './expand-keys.ts'
import type { PrewarmPlan, PrewarmWish } from './plan-prewarm.ts'
import type { Prewarmer } from './prewarmer.ts'

const body = z.strictObject({
  redisClusterId: z.string().min(1).optional(),
  keys: z.array(z.string().min(1)).min(1),
  services: z.array(z.string().min(1)).default([]),
  at: z.string().optional(),
  cron: z.string().max(200).optional(),
  timeZone: z.string().min(1).max(100).optional(),
  forMs: z.number().int().min(1000).max(86_400_000).default(600_000),
  values: z.record(z.string(), z.string()).default({}),
  dryRun: z.boolean().default(false),
})

export interface PrewarmRoutesOptions {
  readonly prewarmer: Prewarmer
  readonly plan: (wish: PrewarmWish) => PrewarmPlan
  /** Ends the hold of a key; false if it is not hot. */
  readonly endPrewarm: (redisClusterId: string, key: string, who: string) => boolean
  /** What a key is called in the table. */
  readonly outside: (key: string) => string
  /** True if keys are redacted. */
  readonly isRedacting: boolean
  readonly audit: (who: string, what: string, before: unknown, after: unknown) => Promise<void>
}

/** The most keys that a job's audit entry lists; with more, it gives their number. */
const maxAuditedKeys = 100

/** Pre-warming over the API. Each call is in the audit before it is carried out, without the values. */
export function prewarmRoutes(options: PrewarmRoutesOptions): ApiRoute[] {
  const { prewarmer, plan, audit, outside, isRedacting, endPrewarm } = options
  return [
    {
      method: 'POST',
      path: '/v1/prewarm',
      summary:
        'Makes named keys hot now, at a time or by cron: {keys: ["product_100..120"], at: "19:58", cron, timeZone, forMs, values, dryRun}',
      role: 'operator',
      body,
      // Room for ten thousand keys of a kilobyte.
      bodyLimit: 16 * 1024 * 1024,
      answer: '{ job?: PrewarmJob, plan: PrewarmPlan, result?: PrewarmResult }',
      async handle({ body: given, caller }) {
        const { at, cron, timeZone, values, dryRun, services, forMs, ...asked } = given as z.infer<typeof body>
        if (Object.keys(values).length > 0 && !prewarmer.canWriteValues) {
          throw new ApiProblem(
            400,
            'FB_PREWARM_INVALID',
            'values: this hub has no Redis to write them to; start it with one, or write them yourself',
            'values',
          )
        }
        if (Object.keys(values).length > 0 && isRedacting) {
          const message = 'values: a hub that redacts keys does not know the real ones; write them yourself'
          throw new ApiProblem(400, 'FB_PREWARM_INVALID', message, 'values')
        }
        const now = prewarmer.now()
        const schedule = scheduleOf(cron, timeZone, at)
        const when = schedule !== undefined ? firstOf(schedule, now) : at === undefined ? now : parseAt(at, now)
        if (when + forMs <= now) {
          const message = `at: ${new Date(when).toISOString()} and the ${forMs / 1000} s after it have passed`
          throw new ApiProblem(400, 'FB_PREWARM_INVALID', message, 'at')
        }
        const keys = [...new Set(expandKeys(asked.keys).map(outside))]
        const made = plan({ redisClusterId: asked.redisClusterId, keys, services, isNow: when <= now })
        if (dryRun) return { plan: made }
        const { redisClusterId } = made
        const repeated = { ...(schedule !== undefined && { schedule }) }
        const job = { redisClusterId, keys, services, forMs, values, at: when, who: caller.who, ...repeated }
        const valueCount = Object.keys(values).length
        const asWritten = { redisClusterId, services, forMs, at: when, valueCount, ...repeated }
        const named = { keys: keys.slice(0, maxAuditedKeys), keyCount: keys.length }
        await audit(caller.who, `pre-warm ${keys.length} keys`, null, { ...asWritten, ...named })
        return { ...(await prewarmer.add(job)), plan: made }
      },
    },
    {
      method: 'GET',
      path: '/v1/prewarm',
      summary: 'Scheduled pre-warm jobs',
      role: 'viewer',
      answer: '{ jobs: PrewarmJob[] }',
      handle: async () => ({ jobs: await prewarmer.jobs() }),
    },
    {
      method: 'DELETE',
      path: '/v1/keys/:cluster/:key/prewarm',
      summary: 'Ends the pre-warming of one key: it stays hot by its own heat alone',
      role: 'operator',
      answer: 'nothing',
      status: 204,
      async handle({ params, caller }) {
        const name = parseKeyText(params['key']!)
        if (name === undefined)
          throw new ApiProblem(400, 'FB_INPUT_INVALID', 'the key is not percent-encoded text', 'key')
        const [redisClusterId, key] = [params['cluster']!, outside(name)]
        prewarmer.release(redisClusterId, key)
        if (!endPrewarm(redisClusterId, key, caller.who)) {
          const message = `the key ${describeValue(params['key'])} is not hot: its pre-warming has ended`
          throw new ApiProblem(404, 'FB_NOT_FOUND', message, 'key')
        }
        await audit(caller.who, `end the pre-warming of ${keyText(key)}`, { redisClusterId, key }, null)
      },
    },
    {
      method: 'DELETE',
      path: '/v1/prewarm/:id',
      summary: 'Cancels a pre-warm job',
      role: 'operator',
      answer: 'nothing',
      status: 204,
      async handle({ params, caller }) {
        const job = (await prewarmer.jobs()).find(({ id }) => id === params['id'])
        if (job === undefined)
          throw new ApiProblem(404, 'FB_PREWARM_UNKNOWN', `unknown pre-warm job ${describeValue(params['id'])}`)
        const { keys, values: _values, ...rest } = job
        const before = { ...rest, keys: keys.slice(0, maxAuditedKeys), keyCount: keys.length }
        await audit(caller.who, `cancel pre-warm job ${job.id}`, before, null)
        await prewarmer.cancel(job.id)
      },
    },
  ]
}

/** The schedule of a recurring job; its time zone is UTC unless given. */
function scheduleOf(
  cron: string | undefined,
  timeZone: string | undefined,
  at: string | undefined,
): string | undefined {
  if (cron === undefined && timeZone === undefined) return undefined
  if (cron === undefined || at !== undefined) {
    const message = cron === undefined ? 'timeZone requires cron' : 'at and cron cannot be combined'
    throw new ApiProblem(400, 'FB_PREWARM_INVALID', message, 'cron')
  }
  return `${cron.trim()} in ${timeZone ?? 'UTC'}`
}

function firstOf(schedule: string, now: number): number {
  let next: number | undefined
  try {
    next = parseSchedule(schedule).next(now)
  } catch (error) {
    throw new ApiProblem(400, 'FB_PREWARM_INVALID', `cron: ${(error as Error).message}`, 'cron')
  }
  if (next !== undefined) return next
  throw new ApiProblem(400, 'FB_PREWARM_INVALID', 'cron: that time never comes', 'cron')
}
