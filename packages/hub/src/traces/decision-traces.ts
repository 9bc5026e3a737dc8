import type { HistoryEvent, Runtime } from '@firebreak/core'
import { attributesOf, nanoseconds, type OtlpHead, type OtlpSignal } from '@firebreak/core/metrics'
import { endOf, isBeginning } from '../history/episodes.ts'

/** A span of OTLP's JSON form. */
export interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: 1
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: ReturnType<typeof attributesOf>
  readonly events?: readonly { readonly timeUnixNano: string; readonly name: string; readonly attributes: unknown }[]
}

interface OpenTrace {
  readonly traceId: string
  readonly rootId: string
  readonly first: HistoryEvent
  /** When the previous step ended. */
  lastAt: number
  readonly done: Set<HistoryEvent['kind']>
  readonly events: HistoryEvent[]
}

/** Maximum number of hot keys with an open trace. */
const maxOpen = 10_000
/** Maximum number of spans waiting for the collector. */
const maxWaiting = 5000
/** Maximum number of steps named in one key's root span. */
const maxEvents = 100
const internalSpan = 1

/**
 * A trace for each time a key is hot: `deliver` from the decision until its table was sent to the sensors, `handle`
 * from there to the first read that a strategy answered, and their parent `hot key`, which is exported when the key has
 * cooled. Steps are exported as they end, so that a trace exists while its key is still hot. Spans wait, bounded, for
 * an unreachable collector; the oldest are dropped first and counted.
 */
export class DecisionTraces implements OtlpSignal {
  readonly name = 'traces'
  /** Spans dropped while the collector was unreachable. */
  dropped = 0
  readonly #runtime: Runtime
  readonly #open = new Map<string, OpenTrace>()
  #waiting: OtlpSpan[] = []
  /** How many of the waiting ones are in the current request. */
  #asked = 0

  constructor(runtime: Runtime) {
    this.#runtime = runtime
  }

  /** Takes the events that are written to the history. */
  record(event: HistoryEvent): void {
    const id = `${event.redisClusterId}\u0000${event.key}\u0000${event.ruleId}`
    const known = this.#open.get(id)
    if (known === undefined) {
      if (isBeginning(event)) this.#begin(id, event)
      return
    }
    if (known.events.length < maxEvents) known.events.push(event)
    if (event.kind === 'delivered' || event.kind === 'handled') this.#step(known, event)
    const end = endOf(event)
    if (end === undefined) return
    this.#open.delete(id)
    this.#add(this.#root(known, event.at, end))
  }

  request({ resource }: OtlpHead): object | undefined {
    if (this.#waiting.length === 0) return undefined
    this.#asked = this.#waiting.length
    const scopeSpans = [{ scope: { name: 'firebreak' }, spans: this.#waiting }]
    return { resourceSpans: [{ resource: { attributes: attributesOf(resource) }, scopeSpans }] }
  }

  onTaken(): void {
    this.#waiting = this.#waiting.slice(this.#asked)
    this.#asked = 0
  }

  #begin(id: string, first: HistoryEvent): void {
    if (this.#open.size >= maxOpen) this.#open.delete(this.#open.keys().next().value!)
    const trace = { traceId: this.#newId(), rootId: this.#newId().slice(0, 16), first, lastAt: first.at }
    this.#open.set(id, { ...trace, done: new Set(), events: [first] })
  }

  #step(trace: OpenTrace, { kind, at, text }: HistoryEvent): void {
    // Several hubs may record the same step; the first one counts.
    if (trace.done.has(kind)) return
    trace.done.add(kind)
    this.#add({
      traceId: trace.traceId,
      spanId: this.#newId().slice(0, 16),
      parentSpanId: trace.rootId,
      name: kind === 'delivered' ? 'deliver' : 'handle',
      kind: internalSpan,
      startTimeUnixNano: nanoseconds(trace.lastAt),
      endTimeUnixNano: nanoseconds(Math.max(at, trace.lastAt)),
      attributes: attributesOf({ 'firebreak.text': text }),
    })
    trace.lastAt = Math.max(at, trace.lastAt)
  }

  #root({ traceId, rootId, first, events }: OpenTrace, at: number, end: string): OtlpSpan {
    const { redisClusterId, key, ruleId, text, kind } = first
    return {
      traceId,
      spanId: rootId,
      name: 'hot key',
      kind: internalSpan,
      startTimeUnixNano: nanoseconds(first.at),
      endTimeUnixNano: nanoseconds(Math.max(at, first.at)),
      attributes: attributesOf({
        'firebreak.key': key,
        'firebreak.cluster': redisClusterId,
        'firebreak.rule': ruleId,
        'firebreak.reason': text,
        'firebreak.begin': kind,
        'firebreak.end': end,
      }),
      events: events.map((event) => ({
        timeUnixNano: nanoseconds(event.at),
        name: event.kind,
        attributes: attributesOf({ 'firebreak.text': event.text }),
      })),
    }
  }

  #add(span: OtlpSpan): void {
    this.#waiting.push(span)
    if (this.#waiting.length <= maxWaiting) return
    this.#waiting = this.#waiting.slice(1)
    this.#asked = Math.max(0, this.#asked - 1)
    this.dropped++
  }

  /** 32 hexadecimal digits. */
  #newId(): string {
    return this.#runtime.newId().replaceAll('-', '')
  }
}
