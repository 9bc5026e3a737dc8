import type { LockReport } from '@firebreak/locks'
import { z } from 'zod'

const count = z.number().int().nonnegative()
const ms = z.number().nonnegative()
const id = z.string().min(1).max(256)
const kind = z.enum(['lock', 'fair', 'read', 'write', 'permit'])
const name = z.string().min(1).max(1024)
const owner = z.string().min(1).max(1024)
const duration = z.object({ count, sumMs: ms, maxMs: ms, buckets: z.array(count).max(64) })

/** What a process may post about its locks; bounded in every direction. */
export const lockReportSchema: z.ZodType<LockReport> = z.object({
  version: z.literal(1),
  serviceId: id,
  hostId: id,
  instanceId: id,
  validMs: z.number().int().min(100).max(600_000),
  held: z
    .array(
      z.object({
        name,
        kind,
        owner,
        token: count,
        holdCount: count,
        heldMs: ms,
        remainingMs: z.number(),
        isRenewed: z.boolean(),
      }),
    )
    .max(1000),
  waiting: z.array(z.object({ name, kind, owner, waitingMs: ms })).max(1000),
  heldCount: count,
  waitingCount: count,
  metrics: z.object({
    acquired: count,
    contended: count,
    handedOver: count,
    refused: count,
    released: count,
    lost: z.object({ expired: count, taken: count }),
    renewals: count,
    renewalErrors: count,
    wait: duration,
    hold: duration,
  }),
})
