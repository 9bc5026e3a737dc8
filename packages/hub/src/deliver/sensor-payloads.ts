import { z } from 'zod'

/** What sensors may send as JSON; unknown fields of newer sensors are accepted. */
const id = z.string().min(1).max(256)
const count = z.number().min(0).default(0)
/** For a claim: if refused, it is returned to every process of the service. */
const claimedKey = z.string().max(4096)
const maxNamedClusters = 1000

export const helloPayload = z.object({
  serviceId: id,
  hostId: id,
  instanceId: id,
  agent: z.string().max(256).default('unknown'),
  redisClusterIds: z.array(z.string().max(256)).max(1000).default([]),
  epoch: z.string().max(256).default(''),
  version: z.number().default(0),
  sentAt: z.number(),
  token: z.string().max(1024).optional(),
  canInspect: z.boolean().default(false),
  canProbe: z.boolean().default(false),
  takesParts: z.boolean().default(false),
})

const watcher = z.object({
  redisClusterId: z.string().max(256),
  // A kind or state of a later version must not invalidate the rest of the status.
  kind: z.enum(['tracking', 'fallback', 'lane', 'none']).catch('none'),
  state: z.enum(['live', 'connecting', 'expired', 'refused']).catch('connecting'),
  detail: z.string().max(1000).default(''),
})

const keyEffect = z.object({
  redisClusterId: z.string().max(256),
  key: z.string(),
  localHits: count,
  redisReads: count,
  bytesSaved: count,
  readMs: z.number().min(0).optional(),
  limited: count,
  copyReads: count.optional(),
  combined: count.optional(),
  errors: count,
  staleMs: z.number().min(0).optional(),
  ruleId: z.string().max(256).optional(),
})

const placedCopies = z.object({
  redisClusterId: z.string().max(256),
  key: z.string(),
  names: z.array(z.string()).max(1024),
  isRefresher: z.boolean(),
})

export const statusPayload = z.object({
  sentAt: z.number(),
  epoch: z.string().max(256),
  version: z.number(),
  isOff: z.boolean().default(false),
  counters: z.object({
    reads: count,
    writes: count,
    localHits: count,
    loads: count,
    bypasses: count,
    invalidations: count,
    flushes: count,
    limited: count,
    copyReads: count,
    combined: count.optional(),
    droppedReports: count,
    errors: count,
  }),
  keys: z.array(keyEffect).max(10_000).default([]),
  copies: z.array(placedCopies).max(1000).optional(),
  watchers: z.array(watcher).max(1000).default([]),
  troubles: z
    .array(z.object({ kind: id, message: z.string().max(500) }))
    .max(20)
    .optional(),
  cachedBytes: z.number().min(0).optional(),
  nodeCounts: z
    .record(z.string().max(256), z.number().int().min(1).max(16_384))
    .refine((counts) => Object.keys(counts).length <= maxNamedClusters, `at most ${maxNamedClusters} clusters`)
    .optional(),
})

export const claimPayload = z.object({
  redisClusterId: id,
  key: claimedKey,
  ruleId: id,
  heat: z.number().min(0),
})

/** More than any server has. */
const maxInspectedCommands = 1000

export const inspectedPayload = z.object({
  id: z.string().max(64),
  type: z.string().max(64).optional(),
  bytes: z.number().min(0).optional(),
  ttlMs: z.number().min(0).optional(),
  encoding: z.string().max(64).optional(),
  value: z.string().max(16_384).optional(),
  isCut: z.boolean().optional(),
  commands: z
    .array(z.object({ name: z.string().max(64), count: z.number().min(0) }))
    .max(maxInspectedCommands)
    .optional(),
  heardMs: z.number().positive().optional(),
  problem: z.string().max(500).optional(),
})

const slotCount = 16_384
const slot = z
  .number()
  .int()
  .min(0)
  .max(slotCount - 1)
const slotRange = z.tuple([slot, slot])

const nodeLoad = z.object({
  redisClusterId: z.string().max(256),
  node: z.string().max(256),
  slots: z.array(slotRange).max(slotCount).optional(),
  spanMs: z.number().min(1).max(600_000),
  commands: z.number().min(0).optional(),
  cpuMs: z.number().min(0).optional(),
  roundTripMs: z.number().min(0),
  problem: z.string().max(500).optional(),
})

export const loadPayload = z.object({ nodes: z.array(nodeLoad).max(10_000) }).refine(({ nodes }) => {
  // A cluster's slots are divided among its nodes: more would only make the hub work for nothing.
  const widths = new Map<string, number>()
  for (const { redisClusterId, slots = [] } of nodes) {
    const width = slots.reduce((sum, [first, last]) => sum + Math.max(1, last - first + 1), 0)
    widths.set(redisClusterId, (widths.get(redisClusterId) ?? 0) + width)
  }
  return [...widths.values()].every((width) => width <= slotCount)
}, `the nodes of a cluster have more than ${slotCount} slots together`)
