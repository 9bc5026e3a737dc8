import { encodeCommand } from '@firebreak/core/resp'
import type { ConnectionState } from '../upstream/identity.ts'
import { UpstreamConnection, type UpstreamSettings } from '../upstream/upstream-connection.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'
import type { ProxyLogger } from './proxy-logger.ts'

/** How a proxy checks whether its Redis answers, and where it logs the result. */
export interface UpstreamWatchOptions {
  /** The proxy's own identity to Redis. */
  readonly state: ConnectionState
  readonly settings: UpstreamSettings
  readonly logger: ProxyLogger
}

interface Question {
  readonly connection: UpstreamConnection
  readonly sinceMs: number
}

/** How long to wait before asking a node again that did not answer. */
const awayMs = 1000
/** The same for a node that nobody is connected to. */
const unusedMs = 5000
/** How long an answer may take on an open connection. */
const answerMs = 1000

const ping = encodeCommand(['PING'])

/**
 * Checks whether nodes are up, over a short-lived connection: at the start, when a connection was lost or could not be
 * made, every second while one does not answer or a shared connection has been waiting for a reply for long, and
 * occasionally if nobody is connected. This check alone decides who is up: a server may well close a connection, and a
 * client may send a wrong password. A node is up whatever it answers, except LOADING and a refusal of the proxy's own
 * user.
 *
 * Logs the first failure and the recovery, and nothing in between.
 */
export class UpstreamWatch {
  readonly #options: UpstreamWatchOptions
  readonly #questions = new Map<UpstreamNode, Question>()
  readonly #askedMs = new WeakMap<UpstreamNode, number>()
  /** When each unreachable node was reported. */
  readonly #away = new Map<UpstreamNode, number>()
  readonly #wasUp = new WeakSet<UpstreamNode>()
  /** Several nodes serve: each has only its share of the keys. */
  #isCluster = false

  constructor(options: UpstreamWatchOptions) {
    this.#options = options
  }

  /** Checks the nodes that serve now; called some ten times a second. */
  tick(nodes: readonly UpstreamNode[], nowMs: number): void {
    this.#isCluster = nodes.length > 1
    for (const { connection, sinceMs } of [...this.#questions.values()]) {
      if (nowMs - sinceMs > this.#options.settings.connectWaitMs + answerMs) connection.lose('it does not answer PING')
    }
    for (const node of nodes) if (!this.#questions.has(node) && this.#isDue(node, nowMs)) this.#ask(node, nowMs)
    for (const node of [...this.#away.keys()]) {
      if (nodes.includes(node)) continue
      this.#away.delete(node)
      this.#tell('info', node, 'no longer serves anything')
    }
  }

  close(): void {
    for (const { connection } of this.#questions.values()) connection.destroy()
    this.#questions.clear()
    this.#away.clear()
  }

  #isDue(node: UpstreamNode, nowMs: number): boolean {
    const { isUp, isInDoubt } = node.health
    const elapsedMs = nowMs - (this.#askedMs.get(node) ?? Number.NEGATIVE_INFINITY)
    if (isUp !== true || node.isSilent) return elapsedMs >= awayMs
    return isInDoubt || (node.connectionCount === 0 && elapsedMs >= unusedMs)
  }

  #ask(node: UpstreamNode, nowMs: number): void {
    node.health.isInDoubt = false
    const { state, settings } = this.#options
    let begin = ''
    const connection = new UpstreamConnection(
      node.target,
      state,
      {
        onReply: (bytes, start, end, isLast) => {
          begin = (begin + bytes.toString('latin1', start, end)).slice(0, 100)
          if (!isLast) return
          connection.destroy()
          node.onAnswered(nowMs)
          this.#answered(node, begin.startsWith('-LOADING') ? `it answered ${begin.slice(1).trim()}` : undefined)
        },
        onLost: ({ reason }) => this.#answered(node, reason),
      },
      settings,
    )
    connection.outlet.put(ping, 0, ping.length)
    this.#questions.set(node, { connection, sinceMs: nowMs })
  }

  /** The check was answered, or failed for a reason. */
  #answered(node: UpstreamNode, reason: string | undefined): void {
    const nowMs = this.#options.settings.runtime.clock.now()
    this.#questions.delete(node)
    this.#askedMs.set(node, nowMs)
    node.health.isUp = reason === undefined
    if (reason === undefined) this.#wasUp.add(node)
    const awaySinceMs = this.#away.get(node)
    if (reason !== undefined && awaySinceMs === undefined) {
      this.#away.set(node, nowMs)
      const scheme = this.#wasUp.has(node) ? '' : schemeHint(node, reason)
      this.#tell('warn', node, `is unreachable (${reason}): ${this.#failing()}${scheme}`)
    } else if (reason === undefined && awaySinceMs !== undefined) {
      this.#away.delete(node)
      this.#tell('info', node, `recovered after ${((nowMs - awaySinceMs) / 1000).toFixed(1)} s`)
    }
  }

  /** Which requests fail while a node does not answer. */
  #failing(): string {
    return this.#isCluster
      ? 'requests for the keys that it holds fail until it recovers or another node takes them over; all others go on'
      : 'all requests that need it fail until it recovers'
  }

  #tell(level: 'info' | 'warn', { address }: UpstreamNode, what: string): void {
    this.#options.logger[level]({ node: address }, `Redis at ${address} ${what}.`)
  }
}

/** What to try if a node that has never answered may speak TLS where we do not, or the other way round. */
function schemeHint({ target }: UpstreamNode, reason: string): string {
  if (target.tls === undefined) {
    const isCut = /ECONNRESET|closed|invalid reply/.test(reason)
    return isCut ? '. If it uses TLS, write rediss:// in the address (--upstream or REDIS_URL)' : ''
  }
  const isPlain = /does not answer|wrong version number|packet length/i.test(reason)
  return isPlain ? '. If it does not use TLS, write redis:// in the address (--upstream or REDIS_URL)' : ''
}
