import { type Clock, describeValue, steadyClock } from '@firebreak/core'
import type { LockReport } from '@firebreak/locks'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { PassingAlarms } from '../alarms/passing-alarms.ts'
import { ApiProblem } from '../errors.ts'
import type { Teller } from '../fleet/teller-bounds.ts'
import { LockBoard } from './lock-board.ts'
import { lockReportSchema } from './lock-report-schema.ts'

/** Options for the lock board. */
export interface LockRoutesOptions {
  /**
   * Processes that may report at once; more are refused with 503.
   * @default 10000
   */
  readonly maxInstances?: number
  /** Locks in one answer. @default 1000 */
  readonly maxLocks?: number
  /** A lock's name in answers. @default its name */
  readonly outside?: (name: string) => string
  /** @default steadyClock */
  readonly clock?: Clock
  /** Who sent a request. @default 'local' */
  readonly whoOf?: (request: FastifyRequest) => string
  /** Where lost locks are reported. @default nowhere */
  readonly alarms?: PassingAlarms
  /** Throws if the sender of a report may not report for this process. @default anyone may */
  readonly checkTeller?: (request: FastifyRequest, process: Required<Teller>) => void
  /** Bytes of names and owners in the reports of all processes; one service may have half. @default 67108864 */
  readonly maxBytes?: number
  /** Records what a person did. @default nothing is recorded */
  readonly audit?: (who: string, what: string, before: unknown, after: unknown) => Promise<void>
}

/** Kinds with one holder: Redis cannot tell readers or permits apart. */
const releaseBody = z.strictObject({ kind: z.enum(['lock', 'fair']), name: z.string().min(1).max(1024) })

function parseRelease(body: unknown): z.infer<typeof releaseBody> {
  const parsed = releaseBody.safeParse(body)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const field = issue!.path.join('.') || 'body'
  throw new ApiProblem(400, 'FB_INPUT_INVALID', `${field}: ${issue!.message}`, field)
}

/**
 * `POST /v1/locks`: a process reports what it holds and waits for (`LockReport`); the answer names what it should give
 * up. `POST /v1/locks/release` `{ kind, name }`: asks the holder to give up a lock, at its next report. `GET
 * /v1/locks?prefix=`: the locks of all processes, those with the most waiters first, with totals and reporting
 * processes.
 */
export async function lockRoutes(app: FastifyInstance, options: LockRoutesOptions = {}): Promise<void> {
  const {
    maxInstances = 10_000,
    maxBytes = 64 << 20,
    maxLocks = 1000,
    clock = steadyClock,
    outside = (name) => name,
  } = options
  const board = new LockBoard(clock, maxInstances, maxBytes)

  app.post('/v1/locks', { config: { isForApps: true } }, async (request, reply) => {
    const parsed = lockReportSchema.safeParse(request.body)
    if (!parsed.success) {
      const issue = parsed.error.issues[0]!
      const message = `the lock report is invalid at ${issue.path.join('.') || 'its top'}: ${issue.message}`
      return reply.code(400).send({ code: 'FB_LOCK_REPORT_INVALID', message })
    }
    options.checkTeller?.(request, parsed.data)
    const { held, waiting } = parsed.data
    const renamed = <Lock extends { readonly name: string }>(locks: readonly Lock[]) =>
      locks.map((lock) => ({ ...lock, name: outside(lock.name) }))
    // Releases requested since the previous report go with this answer.
    const asked = board.takeReleases(parsed.data)
    tellLost(options.alarms, parsed.data, board.lostSince(parsed.data))
    if (!board.put({ ...parsed.data, held: renamed(held), waiting: renamed(waiting) })) {
      const message = `${maxInstances} processes are already reporting their locks, or ${maxBytes} bytes of them, half of which one service may have; raise maxInstances or maxBytes`
      return reply.code(503).send({ code: 'FB_LOCK_BOARD_FULL', message })
    }
    return asked.length === 0 ? reply.code(204).send() : { release: asked }
  })

  app.post('/v1/locks/release', async (request) => {
    const { kind, name } = parseRelease(request.body)
    const asked = board.release(kind, name)
    if (asked.length === 0) {
      const message = `no process reports holding the ${kind} ${describeValue(name)}: it was released, or its lease expired`
      throw new ApiProblem(404, 'FB_NOT_FOUND', message, 'name')
    }
    const holders = asked.map(({ serviceId, hostId }) => `${serviceId} on ${hostId}`)
    await options.audit?.(options.whoOf?.(request) ?? 'local', `release lock ${name}`, { kind, holders }, null)
    return { asked }
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

/** A lock lost while its holder is working means two holders at once. */
function tellLost(alarms: PassingAlarms | undefined, { serviceId, hostId }: LockReport, lost: number): void {
  if (lost === 0) return
  const locks = lost === 1 ? 'a lock was' : `${lost} locks were`
  const cause = `locks of ${serviceId} on ${hostId}: ${locks} lost while held (lease expired or taken)`
  const retry = 'the holder is notified; writes with its fencing token are refused'
  const id = `locks:${serviceId}/${hostId}/lost`
  alarms?.show({ id, severity: 'warning', cause, retry }, undefined, serviceId)
}
