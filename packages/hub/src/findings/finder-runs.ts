import type { FinderRunView, Runtime } from '@firebreak/core'
import { parseRedisUrl } from '@firebreak/core/resp'
import { type FinderOptions, type Finding, findBigByScan, findHotByScan, type Progress } from '@firebreak/find'
import { redactFinding } from './redact-finding.ts'

/** A server that the hub may search. */
export interface SearchedServer {
  readonly redisClusterId: string
  readonly url: string
}

/** One way to search; tests substitute their own. */
export type Search = (
  url: string,
  options: { signal: AbortSignal; progress: (progress: Progress) => void },
) => Promise<Finding>

export interface FinderRunsOptions {
  readonly servers: readonly SearchedServer[]
  readonly runtime: Runtime
  /** A key's name in everything that the hub shows. @default its name */
  readonly outside?: ((key: string) => string) | undefined
  /** Called for each finished run. */
  readonly onEnd?: ((run: FinderRunView) => void) | undefined
  /** @default slow, gentle scans, because the server is in use */
  readonly searches?: Readonly<Record<FinderRunView['kind'], Search>>
}

interface Run {
  view: FinderRunView
  readonly end: AbortController
}

/** Number of runs remembered; only one runs at a time. */
const maxRuns = 20

const connected = (url: string): Pick<FinderOptions, 'target'> => ({ target: parseRedisUrl(url) })
const defaultSearches: Readonly<Record<FinderRunView['kind'], Search>> = {
  big: (url, options) => findBigByScan({ ...connected(url), ...options, isGentle: true, prefersReplicas: true }),
  hot: (url, options) => findHotByScan({ ...connected(url), ...options, isGentle: true }),
}

/** Searches for hot and big keys that users start from the hub, on its configured servers (`engines`). */
export class FinderRuns {
  readonly #options: FinderRunsOptions & Required<Pick<FinderRunsOptions, 'searches'>>
  readonly #runs = new Map<string, Run>()

  constructor(options: FinderRunsOptions) {
    this.#options = { searches: defaultSearches, ...options }
  }

  get clusters(): string[] {
    return this.#options.servers.map(({ redisClusterId }) => redisClusterId)
  }

  get isBusy(): boolean {
    return [...this.#runs.values()].some(({ view }) => view.state === 'running')
  }

  /** Newest first, without their results. */
  list(): FinderRunView[] {
    return [...this.#runs.values()].map(({ view }) => ({ ...view, result: null })).reverse()
  }

  get(id: string): FinderRunView | undefined {
    return this.#runs.get(id)?.view
  }

  /** Starts a search; undefined if the hub knows no such server. */
  start(kind: FinderRunView['kind'], redisClusterId: string, who: string): FinderRunView | undefined {
    const server = this.#options.servers.find((known) => known.redisClusterId === redisClusterId)
    if (server === undefined) return undefined
    const { clock, newId } = this.#options.runtime
    const view: FinderRunView = {
      id: newId().slice(0, 8),
      kind,
      redisClusterId,
      who,
      startedAt: clock.now(),
      endedAt: null,
      state: 'running',
      progress: 0,
      detail: 'begins',
      result: null,
    }
    const run = { view, end: new AbortController() }
    this.#runs.set(view.id, run)
    if (this.#runs.size > maxRuns) this.#runs.delete(this.#runs.keys().next().value!)
    void this.#search(run, server.url)
    return view
  }

  /** False if there is no such run, or it has ended. */
  stop(id: string): boolean {
    const run = this.#runs.get(id)
    if (run?.view.state !== 'running') return false
    run.end.abort()
    return true
  }

  close(): void {
    for (const { end } of this.#runs.values()) end.abort()
  }

  async #search(run: Run, url: string): Promise<void> {
    const { searches, runtime, outside } = this.#options
    const { signal } = run.end
    const change = (fields: Partial<FinderRunView>) => {
      run.view = { ...run.view, ...fields }
    }
    const progress = ({ done, total, unit }: Progress) => {
      const isKnown = total > 0
      change({
        progress: isKnown ? Math.min(1, done / total) : null,
        detail: isKnown ? `${done} of ${total} ${unit}` : `${done} ${unit}`,
      })
    }
    try {
      const found = await searches[run.view.kind](url, { signal, progress })
      const result = outside === undefined ? found : redactFinding(found, outside)
      const state = signal.aborted ? 'stopped' : 'done'
      change({ state, result, progress: state === 'done' ? 1 : run.view.progress, endedAt: runtime.clock.now() })
    } catch (error) {
      // Find's messages never contain the address' password.
      change({ state: 'failed', detail: (error as Error).message, endedAt: runtime.clock.now() })
    }
    this.#options.onEnd?.(run.view)
  }
}
