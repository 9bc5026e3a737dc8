import type { Finding } from '@firebreak/find'
import { z } from 'zod'

const text = z.string().max(70_000)
const count = z.number().finite().nonnegative()

const foundKey = z.object({
  key: text,
  database: count.optional(),
  node: z.string().max(300).optional(),
  slot: count.max(16383).optional(),
  type: z.enum(['string', 'list', 'set', 'zset', 'hash', 'stream', 'module']).optional(),
  encoding: z.string().max(40).optional(),
  bytes: count.optional(),
  elements: count.optional(),
  largestElementBytes: count.optional(),
  ttlMs: count.optional(),
  fieldsWithTtl: count.optional(),
  idleSeconds: count.optional(),
  frequency: count.optional(),
  accesses: count.optional(),
  writes: count.optional(),
  accessesPerSecond: count.optional(),
  relativeError: count.optional(),
  share: count.optional(),
  cpuMicroseconds: count.optional(),
  networkBytes: count.optional(),
  commands: z.record(z.string().max(60), count).optional(),
})
const keys = z.array(foundKey).max(10_000)

interface Prefix {
  readonly prefix: string
  readonly keys: number
  readonly bytes: number
  readonly elements: number
  readonly keysWithTtl?: number | undefined
  readonly children: readonly Prefix[]
}
const prefix: z.ZodType<Prefix> = z.object({
  prefix: text,
  keys: count,
  bytes: count,
  elements: count,
  keysWithTtl: count.optional(),
  children: z.lazy(() => z.array(prefix).max(20_000)),
})

/**
 * What `POST /v1/findings` accepts: the shape that `firebreak find --json` prints. Fields of later versions are
 * dropped.
 */
export const findingSchema = z.object({
  version: z.literal(1),
  id: z.uuid(),
  kind: z.enum(['hot', 'big', 'slots']),
  method: z.enum(['scan', 'monitor', 'capture', 'server', 'rdb', 'live', 'slot-stats', 'commandstats']),
  startedAtMs: count,
  tookMs: count,
  source: z.array(z.string().max(1000)).max(2000),
  topology: z.enum(['standalone', 'cluster', 'sentinel', 'file']),
  isComplete: z.boolean(),
  scanned: count,
  keys,
  types: z
    .array(
      z.object({
        type: z.enum(['string', 'list', 'set', 'zset', 'hash', 'stream', 'module']),
        keys: count,
        bytes: count,
        elements: count,
        keysWithTtl: count.optional(),
        byBytes: keys,
        byElements: keys,
      }),
    )
    .max(7)
    .optional(),
  prefixes: prefix.optional(),
  nodes: z
    .array(
      z.object({
        node: z.string().max(300),
        slots: count,
        operationsPerSecond: count,
        share: count,
        cpuMicrosecondsPerSecond: count.optional(),
        bytesInPerSecond: count.optional(),
        bytesOutPerSecond: count.optional(),
        keys: count.optional(),
        skew: count,
      }),
    )
    .max(2000)
    .optional(),
  slots: z
    .array(
      z.object({
        slot: count.max(16383),
        node: z.string().max(300),
        operationsPerSecond: count.optional(),
        cpuMicrosecondsPerSecond: count.optional(),
        bytesPerSecond: count.optional(),
        keys: count.optional(),
        share: count,
      }),
    )
    .max(16384)
    .optional(),
  counts: z.record(z.string().max(60), z.number()).optional(),
  notes: z.array(z.string().max(4000)).max(200),
})

/** A finding from a request's body, or a message that says what is wrong with it. */
export function parseFinding(body: unknown): { finding: Finding } | { problem: string } {
  const result = findingSchema.safeParse(body)
  if (result.success) return { finding: result.data as unknown as Finding }
  const [issue] = result.error.issues
  return { problem: `${issue!.path.join('.') || 'the body'}: ${issue!.message}` }
}
