import { type Clock, steadyClock } from '@firebreak/core'
import type { FastifyInstance } from 'fastify'
import { LockBoard } from './lock-board.ts'
import { lockReportSchema } from './lock-report-schema.ts'

/** How the hub keeps what processes report about their locks. */
export interface LockRoutesOptions {
  /**
   * Processes that may report at once; more are refused with 503.
   * @default 10000
   */
  readonly maxInstances?: number
  /** Locks in one answer. @default 1000 */
  readonly maxLocks?: number
  /** @default steadyClock */
  readonly clock?: Clock
}

/**
 * `POST /v1/locks`: a process reports what it holds and waits for (`LockReport`).
 * `GET /v1/locks?prefix=`: the locks of all processes, the most waited for first, with totals and reporting processes.
 */
export async function lockRoutes(app: FastifyInstance, options: LockRoutesOptions = {}): Promise<void> {
  const { maxInstances = 10_000, maxLocks = 1000, clock = steadyClock } = options
  const board = new LockBoard(clock, maxInstances)

  app.post('/v1/locks', async (request, reply) => {
    const parsed = lockReportSchema.safeParse(request.body)
    if (!parsed.success) {
      const issue = parsed.error.issues[0]!
      const message = `the lock report is wrong at ${issue.path.join('.') || 'its top'}: ${issue.message}`
      return reply.code(400).send({ code: 'FB_LOCK_REPORT_INVALID', message })
    }
    if (!board.put(parsed.data)) {
      const message = `${maxInstances} processes report their locks already; raise maxInstances`
      return reply.code(503).send({ code: 'FB_LOCK_BOARD_FULL', message })
    }
    return reply.code(204).send()
  })

  app.get<{ Querystring: { prefix?: string } }>('/v1/locks', async (request) => {
    const locks = board.locks(request.query.prefix)
    return {
      locks: locks.slice(0, maxLocks),
      lockCount: locks.length,
      instances: board.instances(),
      totals: board.totals(),
      refusedReports: board.refused,
    }
  })
}
