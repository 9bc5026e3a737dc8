import { describeValue } from '@firebreak/core'
import { z } from 'zod'
import { ApiProblem } from '../errors.ts'
import type { ApiRoute } from '../http/api-route.ts'
import type { FinderRuns } from './finder-runs.ts'

const startBody = z.strictObject({ kind: z.enum(['big', 'hot']), redisClusterId: z.string().min(1).max(256) })

/** Records a person's change in the audit. */
type Audit = (who: string, what: string, before: unknown, after: unknown) => Promise<void>

/** Searches that users start from the hub. */
export function finderRunRoutes(runs: FinderRuns, audit: Audit): ApiRoute[] {
  const known = (id: string) => {
    const run = runs.get(id)
    if (run === undefined) throw new ApiProblem(404, 'FB_NOT_FOUND', `unknown run ${describeValue(id)}`, 'id')
    return run
  }
  return [
    {
      method: 'POST',
      path: '/v1/finders',
      summary: 'Searches a server of the hub (engines) for big or hot keys',
      role: 'operator',
      body: startBody,
      answer: 'FinderRunView',
      status: 202,
      async handle({ body, caller }) {
        const { kind, redisClusterId } = body as z.infer<typeof startBody>
        if (runs.isBusy)
          throw new ApiProblem(409, 'FB_FINDER_BUSY', 'a run is in progress; stop it or wait for it to end', 'kind')
        const run = runs.start(kind, redisClusterId, caller.who)
        if (run === undefined) {
          const names = runs.clusters.join(', ') || 'none; name them with --engines'
          const message = `the hub has no server for cluster ${describeValue(redisClusterId)}; it knows: ${names}`
          throw new ApiProblem(404, 'FB_NOT_FOUND', message, 'redisClusterId')
        }
        await audit(caller.who, `search ${redisClusterId} for ${kind} keys`, null, null)
        return run
      },
    },
    {
      method: 'GET',
      path: '/v1/finders',
      summary: 'Runs, newest first, and the clusters that can be searched',
      role: 'viewer',
      answer: '{ runs: FinderRunView[], clusters: string[] }',
      handle: () => ({ runs: runs.list(), clusters: runs.clusters }),
    },
    {
      method: 'GET',
      path: '/v1/finders/:id',
      summary: 'One run with its findings',
      role: 'viewer',
      answer: 'FinderRunView',
      handle: ({ params }) => known(params['id']!),
    },
    {
      method: 'DELETE',
      path: '/v1/finders/:id',
      summary: 'Stops a run; what it has found is kept',
      role: 'operator',
      answer: 'nothing',
      status: 204,
      async handle({ params, caller }) {
        const { id } = known(params['id']!)
        if (!runs.stop(id)) throw new ApiProblem(409, 'FB_FINDER_OVER', `the run ${id} has ended`, 'id')
        await audit(caller.who, `stop search ${id}`, null, null)
      },
    },
  ]
}
