import { z } from 'zod'
import { ApiProblem } from '../errors.ts'
import type { ApiRoute } from '../http/api-route.ts'
import { expandKeys, parseAt } from './expand-keys.ts'
import type { PrewarmPlan, PrewarmWish } from './plan-prewarm.ts'
import type { Prewarmer } from './prewarmer.ts'

const body = z.strictObject({
  redisClusterId: z.string().min(1).optional(),
  keys: z.array(z.string().min(1)).min(1),
  services: z.array(z.string().min(1)).default([]),
  at: z.string().optional(),
  forMs: z.number().int().min(1000).max(86_400_000).default(600_000),
  values: z.record(z.string(), z.string()).default({}),
  dryRun: z.boolean().default(false),
})

/** Pre-warming over the API. */
export function prewarmRoutes(prewarmer: Prewarmer, plan: (wish: PrewarmWish) => PrewarmPlan): ApiRoute[] {
  return [
    {
      method: 'POST',
      path: '/v1/prewarm',
      summary:
        'Makes named keys hot now or at a time: {keys: ["product_100..120"], at: "19:58", forMs, values, dryRun}',
      role: 'operator',
      body,
      // Ten thousand keys of a kilobyte.
      bodyLimit: 16 * 1024 * 1024,
      answer: '{ job, plan, result }, with dryRun: { plan }',
      async handle({ body: given, caller }) {
        const { at, values, dryRun, services, forMs, ...asked } = given as z.infer<typeof body>
        if (Object.keys(values).length > 0 && !prewarmer.canWriteValues) {
          throw new ApiProblem(
            400,
            'FB_PREWARM_INVALID',
            'values: this hub knows no Redis to put them into; start it with one, or write them yourself',
            'values',
          )
        }
        const now = prewarmer.now()
        const when = at === undefined ? now : parseAt(at, now)
        const keys = [...new Set(expandKeys(asked.keys))]
        const made = plan({ redisClusterId: asked.redisClusterId, keys, services, isNow: when <= now })
        if (dryRun) return { plan: made }
        const { redisClusterId } = made
        const job = { redisClusterId, keys, services, forMs, values, at: when, who: caller.who }
        return { ...(await prewarmer.add(job)), plan: made }
      },
    },
    {
      method: 'GET',
      path: '/v1/prewarm',
      summary: 'Pre-warm jobs to come',
      role: 'viewer',
      answer: '{ jobs: PrewarmJob[] }',
      handle: async () => ({ jobs: await prewarmer.jobs() }),
    },
    {
      method: 'DELETE',
      path: '/v1/prewarm/:id',
      summary: 'Cancels a pre-warm job',
      role: 'operator',
      answer: 'nothing',
      status: 204,
      async handle({ params }) {
        if (!(await prewarmer.cancel(params['id']!)))
          throw new ApiProblem(404, 'FB_PREWARM_UNKNOWN', `there is no pre-warm job ${params['id']}`)
      },
    },
  ]
}
