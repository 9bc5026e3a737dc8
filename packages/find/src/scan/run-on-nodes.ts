import type { RedisTarget, RespClient } from '@firebreak/core/resp'
import {
  type DiscoverOptions,
  discover,
  readingConnections,
  type ServerNode,
  type Topology,
} from '../connect/topology.ts'

/** A finder's progress over all servers. */
export interface Progress {
  /** `keys`, `bytes`, `commands`, `seconds`. */
  readonly unit: string
  readonly done: number
  /** 0 if unknown. */
  readonly total: number
}

/** Options of every finder that talks to servers. */
export interface FinderOptions extends DiscoverOptions {
  /** Where to look: one server, any node of a cluster, or a Sentinel. */
  readonly target: RedisTarget
  /** How many keys each list keeps. @default 20 */
  readonly top?: number
  /** Aborts on Ctrl-C or when the time is up: the result is what was found until then. */
  readonly signal?: AbortSignal
  readonly progress?: (progress: Progress) => void
}

/** Runs the same work on all servers of a deployment in parallel, and closes the connections whatever happens. */
export async function runOnNodes<Result>(
  options: FinderOptions & { readonly prefersReplicas?: boolean },
  work: (node: ServerNode, connection: RespClient, topology: Topology) => Promise<Result>,
): Promise<{ topology: Topology; results: Result[] }> {
  const topology = await discover(options.target, options)
  const opened = await readingConnections(topology, options.prefersReplicas ?? false)
  try {
    const results = await Promise.all(opened.map(({ node, connection }) => work(node, connection, topology)))
    return { topology, results }
  } finally {
    for (const { connection } of opened) connection.close()
  }
}

/** Sums the progress of several servers. */
export class ProgressSum {
  readonly #report: ((progress: Progress) => void) | undefined
  readonly #unit: string
  #done = 0
  #total = 0

  constructor(unit: string, report: ((progress: Progress) => void) | undefined) {
    this.#unit = unit
    this.#report = report
  }

  expect(more: number): void {
    this.#total += more
  }

  add(more: number): void {
    this.#done += more
    this.#report?.({ unit: this.#unit, done: this.#done, total: this.#total })
  }
}
