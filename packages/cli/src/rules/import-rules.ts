import { didYouMean } from '@firebreak/core'
import { parseRule, type Rule } from '@firebreak/core/rules'
import { z } from 'zod'
import { UsageError } from '../command/command.ts'

/** Another system's rules converted to ours, and what could not be converted exactly. */
export interface ImportedRules {
  readonly rules: readonly Rule[]
  readonly remarks: readonly string[]
}

/** Where rules come from. */
export const ruleSources = ['jd-hotkey', 'sentinel'] as const
export type RuleSource = (typeof ruleSources)[number]

export interface ImportOptions {
  readonly from: string | undefined
  /** The keys of a Sentinel resource in Redis: `resource=product_{param}`. */
  readonly keys: readonly string[]
  /** The rules' service. @default all */
  readonly serviceId?: string | undefined
}

/** Converts rules of JD hotkey or Sentinel's hot parameters. All are parsed before any is returned. */
export function importRules(content: unknown, { from, keys, serviceId = '*' }: ImportOptions): ImportedRules {
  const source = ruleSources.find((name) => name === from)
  if (source === undefined) {
    const close = didYouMean(from ?? '', ruleSources)
    throw new UsageError(`--from must be ${ruleSources.join(' or ')}${close ? `; did you mean ${close}?` : ''}`)
  }
  const drafts = source === 'jd-hotkey' ? fromJdHotkey(content) : fromSentinel(content, keyTemplates(keys))
  const seen = new Set<string>()
  const rules = drafts.rules.map(({ name, ...draft }) => parseRule({ ...draft, id: uniqueId(name, seen), serviceId }))
  return { rules, remarks: drafts.remarks }
}

interface Drafts {
  readonly rules: readonly ({ readonly name: string } & Record<string, unknown>)[]
  readonly remarks: readonly string[]
}

const jdRule = z.object({
  key: z.string().min(1),
  prefix: z.boolean().default(false),
  interval: z.coerce.number().positive(),
  threshold: z.coerce.number().int().positive(),
  duration: z.coerce.number().positive().default(60),
  desc: z.string().nullish(),
})

/**
 * JD hotkey: a key, a prefix, or `*` for what no other rule names, in that order; hot from `threshold` accesses in
 * `interval` seconds over all clients, then kept in every client's memory for `duration` seconds.
 */
function fromJdHotkey(content: unknown): Drafts {
  const remarks: string[] = []
  const names = new Set<string>()
  const rules = read(z.array(jdRule), content, 'jd-hotkey').map(({ key, prefix, interval, threshold, duration }) => {
    const [pattern, priority] = key === '*' ? [{ glob: '*' }, 0] : prefix ? [{ prefix: key }, 10] : [{ key }, 20]
    const name = JSON.stringify(pattern)
    if (names.has(name))
      remarks.push(`${key}: appears twice; of two rules for the same keys the one with the smaller id applies`)
    names.add(name)
    if (interval < 1) remarks.push(`${key}: an interval of ${interval} s became the shortest window, 1 s`)
    return {
      name: `jd-${key === '*' ? 'any' : key}`,
      ...pattern,
      priority,
      threshold,
      windowMs: Math.max(1000, Math.round(interval * 1000)),
      minHoldMs: Math.round(duration * 1000),
      strategy: { strategy: 'LocalCache', expireTime: duration },
    }
  })
  return { rules, remarks }
}

const sentinelItem = z.object({
  object: z.union([z.string(), z.number(), z.boolean()]),
  count: z.coerce.number().min(0),
})
const sentinelRule = z.object({
  resource: z.string().min(1),
  count: z.coerce.number().min(0),
  grade: z.coerce.number().default(1),
  paramIdx: z.coerce.number().int().default(0),
  durationInSec: z.coerce.number().positive().default(1),
  controlBehavior: z.coerce.number().default(0),
  burstCount: z.coerce.number().default(0),
  maxQueueingTimeMs: z.coerce.number().default(0),
  clusterMode: z.boolean().default(false),
  paramFlowItemList: z.array(sentinelItem).nullish(),
})

const threads = 0
const queueing = 2

/**
 * Sentinel's hot parameters: each value of a parameter may be requested `count` times in `durationInSec`, with
 * exceptions for some values. They become limits on the keys made from the parameter.
 */
function fromSentinel(content: unknown, templates: ReadonlyMap<string, string>): Drafts {
  const remarks: string[] = []
  /** The parameter that each resource's keys are made from: that of its first rule. */
  const seen = new Map<string, number>()
  const rules = read(z.array(sentinelRule), content, 'sentinel').flatMap((given) => {
    const { resource, count, durationInSec, controlBehavior, burstCount, clusterMode, paramFlowItemList } = given
    if (given.grade === threads) {
      remarks.push(`${resource}: left out, since it limits threads and not accesses (grade 0)`)
      return []
    }
    const template = templates.get(resource)
    const sameResource = seen.get(resource)
    if (sameResource !== undefined && sameResource !== given.paramIdx) {
      remarks.push(
        `${resource}: left out for parameter ${given.paramIdx}, since its keys are made from parameter ${sameResource}`,
      )
      return []
    }
    seen.set(resource, given.paramIdx)
    if (template === undefined)
      throw new UsageError(`name the keys of ${resource}: --keys '${resource}=prefix_{param}' (a rule needs them)`)
    if (!clusterMode)
      remarks.push(
        `${resource}: Sentinel counted in each process; here ${count} is the limit of all processes together`,
      )
    if (controlBehavior === queueing && given.maxQueueingTimeMs > 0)
      remarks.push(
        `${resource}: maxQueueingTimeMs ${given.maxQueueingTimeMs} is an option of each process (maxLimitWaitMs), not of a rule`,
      )
    const windowMs = Math.max(1000, durationInSec * 1000)
    const isBlocked = (name: string, limit: number) => {
      if (limit > 0) return false
      remarks.push(`${name}: left out, since a limit of 0 blocks every access, which no rule does`)
      return true
    }
    // Sentinel's own algorithm is a bucket with this much extra capacity; if it queues, there is none.
    const burstOf = (limit: number) =>
      burstCount > 0 && controlBehavior !== queueing ? { algorithm: 'tokenBucket', burst: limit + burstCount } : {}
    if (burstCount > 0 && controlBehavior === queueing)
      remarks.push(`${resource}: burstCount ${burstCount} is left out, as Sentinel does where accesses queue`)
    const limited = (limit: number) => ({
      threshold: limit,
      windowMs,
      strategy: {
        strategy: 'RateLimit',
        ...burstOf(limit),
        limit,
        windowMs,
        onLimit: controlBehavior === queueing ? 'wait' : 'reject',
        scope: clusterMode ? 'shared' : 'process',
      },
    })
    const items = (paramFlowItemList ?? [])
      .filter(({ object, count: own }) => !isBlocked(`${resource}, value ${object}`, own))
      .map(({ object, count: own }) => ({
        name: `sentinel-${resource}-${object}`,
        key: template.replace('{param}', () => String(object)),
        priority: 20,
        ...limited(own),
      }))
    const general = { name: `sentinel-${resource}`, ...patternOf(template), priority: 10 }
    return [...(isBlocked(resource, count) ? [] : [{ ...general, ...limited(count) }]), ...items]
  })
  return { rules, remarks }
}

function patternOf(template: string): Record<string, string> {
  const [before, after] = template.split('{param}') as [string, string]
  if (after === '') return { prefix: before }
  // The text around the parameter is literal.
  const plain = (text: string) => text.replace(/[\\*?[\]{}]/g, '\\$&')
  return { glob: `${plain(before)}*${plain(after)}` }
}

function keyTemplates(given: readonly string[]): Map<string, string> {
  return new Map(
    given.map((text) => {
      const at = text.indexOf('=')
      const template = text.slice(at + 1)
      if (at < 1 || template.split('{param}').length !== 2 || template === '{param}')
        throw new UsageError(
          `--keys is "${text}"; it must be RESOURCE=KEY, and KEY must contain {param} once, as in product_{param}`,
        )
      return [text.slice(0, at), template]
    }),
  )
}

function read<Shape>(shape: z.ZodType<Shape>, content: unknown, source: string): Shape {
  const result = shape.safeParse(content)
  if (result.success) return result.data
  const [{ path, message }] = result.error.issues as [z.core.$ZodIssue]
  const [index, ...fields] = path
  const place =
    index === undefined ? '' : `rule ${Number(index) + 1}${fields.length === 0 ? '' : `, ${fields.join('.')}`}: `
  throw new UsageError(`these are not rules of ${source}: ${place}${message}`)
}

/** An id with valid characters, made unique if it is taken. */
function uniqueId(name: string, seen: Set<string>): string {
  const base = name.replace(/[^A-Za-z0-9_.:-]+/g, '-').slice(0, 58)
  let id = base
  for (let nth = 2; seen.has(id); nth++) id = `${base}-${nth}`
  seen.add(id)
  return id
}
