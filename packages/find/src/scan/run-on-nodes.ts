import type { RedisTarget, RespClient } from '@firebreak/core/resp'
import {
  type DiscoverOptions,
  discover,
  readingConnections,
  type ServerNode,
  type Topology,
} from '../connect/topology.ts'

/** How far a finder has come, over all servers. */
export interface Progress {
  /** `keys`, `bytes`, `commands`, `seconds`. */
  readonly unit: string
  readonly done: number
  /** 0 where it is not known. */
  readonly total: number
}

/** What every finder that talks to servers is told. */
export interface FinderOptions extends DiscoverOptions {
  /** Where to look: one server, any node of a cluster, or a Sentinel. */
  readonly target: RedisTarget
  /** Keys kept in each list. @default 20 */
  readonly top?: number
  /** Ends at Ctrl-C or after the time allowed: what was found up to there is the result. */
  readonly signal?: AbortSignal
  readonly progress?: (progress: Progress) => void
}

/** Runs the same work on every server of a deployment at once, and closes the connections whatever happens. */
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
