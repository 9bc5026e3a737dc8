import { z } from 'zod'
import { ApiProblem } from '../errors.ts'
import type { ApiRoute } from '../http/api-route.ts'
import { expandKeys, parseAt } from './expand-keys.ts'
import type { Prewarmer } from './prewarmer.ts'

const body = z.strictObject({
  redisClusterId: z.string().min(1).default('default'),
  keys: z.array(z.string().min(1)).min(1),
  services: z.array(z.string().min(1)).default([]),
  at: z.string().optional(),
  forMs: z.number().int().min(1000).max(86_400_000).default(600_000),
  values: z.record(z.string(), z.string()).default({}),
})

/** Pre-warming over the API. */
export function prewarmRoutes(prewarmer: Prewarmer): ApiRoute[] {
  return [
    {
      method: 'POST',
      path: '/v1/prewarm',
      summary: 'Makes named keys hot now or at a time: {keys: ["product_100..120"], at: "19:58", forMs, values}',
      role: 'operator',
      body,
      answer: '{ job, result }',
      async handle({ body: given, caller }) {
        const { at, keys, values, ...rest } = given as z.infer<typeof body>
        if (Object.keys(values).length > 0 && !prewarmer.canWriteValues) {
          throw new ApiProblem(
            400,
            'FB_PREWARM_INVALID',
            'values: this hub knows no Redis to put them into; start it with one, or write them yourself',
            'values',
          )
        }
        const now = prewarmer.now()
        const job = {
          ...rest,
          keys: expandKeys(keys),
          values,
          at: at === undefined ? now : parseAt(at, now),
          who: caller.who,
        }
        return prewarmer.add(job)
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
