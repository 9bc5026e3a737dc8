import { createHash } from 'node:crypto'
import { type Runtime, systemRuntime, type TimerHandle, version } from '@firebreak/core'
import type { MetricFamily } from '@firebreak/core/metrics'
import { type Claim, isOffByEnvironment, Shield } from '@firebreak/shield'
import { announcedPlace } from './announced-place.ts'
import { ClientConnection } from './client/client-connection.ts'
import type { ClientHost, ProxyClient } from './client/proxy-client.ts'
import { StrangerAccess } from './client/stranger-access.ts'
import { Strangers } from './client/strangers.ts'
import type { OnlyNode } from './cluster/cluster-of-one.ts'
import { ClusterTopology } from './cluster/cluster-topology.ts'
import { proxyCommands } from './commands/proxy-command.ts'
import type { Observed } from './observe/firebreak-command.ts'
import type { LatencyTable } from './observe/latency-table.ts'
import { proxyFamilies } from './observe/proxy-families.ts'
import { SlowLog } from './observe/slow-log.ts'
import { UpstreamWatch } from './observe/upstream-watch.ts'
import type { ResolvedProxyOptions } from './options.ts'
import { ClientRoster, type RosterNews } from './roster/client-roster.ts'
import { SentinelTopology } from './sentinel/sentinel-topology.ts'
import { LogIn } from './session/log-in.ts'
import { ProxyUsers } from './session/proxy-users.ts'
import { RemovedUsers } from './session/removed-users.ts'
import { Session } from './session/session.ts'
import { type ProxyNodes, ProxyRedis } from './shield/proxy-redis.ts'
import { ProxyShield } from './shield/proxy-shield.ts'
import { ProxyUpstream, type Whereabouts } from './shield/proxy-upstream.ts'
import { ThreadCounts } from './threads/thread-counts.ts'
import { alone, type ThreadPlace } from './threads/thread-place.ts'
import type { ConnectTarget, Transport, TransportKind } from './transport/transport.ts'
import { Turn } from './transport/turn.ts'
import type { UpstreamMode } from './upstream/find-mode.ts'
import { type ConnectionState, identityOf, nobody } from './upstream/identity.ts'
import type { ReplyTarget } from './upstream/shared-lane.ts'
import { type NodeSettings, UpstreamNode } from './upstream/upstream-node.ts'
import type { ClusterSettings, UpstreamTopology } from './upstream/upstream-topology.ts'

/**
 * What one thread tells the others: a key that it found hot, a CLIENT PAUSE, that cached replies must not be served any
 * more, a query about clients or its answer.
 */
export type ThreadNews =
  | { readonly claim: Claim }
  | { readonly pausedMs: number }
  | { readonly roster: RosterNews }
  | 'forget'

/**
 * What a core takes from its environment: connections to Redis, time and randomness, and its place among the proxy's
 * threads.
 */
export interface ProxyWorld {
  readonly transports: TransportKind
  /** @default the process' own */
  readonly runtime?: Runtime
  /** @default the only thread */
  readonly place?: ThreadPlace
  /** The thread's number in the process. @default 0 */
  readonly threadId?: number
}

/** The part of a proxy that runs once per thread: its clients and its connections to Redis. */
export class ProxyCore implements ClientHost, Whereabouts, ProxyNodes, Observed {
  readonly runtime: Runtime
  readonly turn: Turn
  readonly freshState: ConnectionState = { identity: nobody, version: 2, database: 0 }
  readonly cluster: ClusterSettings | undefined
  readonly shield: ProxyShield | undefined
  readonly #shield: Shield | undefined
  readonly maxRequestBytes: number
  readonly maxHeldBytes: number
  readonly maxOutputBytes: number
  /** As configured, and lower while Redis accepts nothing. */
  maxInFlight: number
  readonly slowReaderMs: number
  readonly users: LogIn | undefined
  readonly #users: ProxyUsers | undefined
  readonly strangerAccess: StrangerAccess
  readonly #strangers = new Strangers()
  readonly clients = new Set<ClientConnection>()
  readonly roster: ClientRoster
  readonly #counts: ThreadCounts
  readonly #removedUsers = new RemovedUsers(this.clients)
  readonly transports: TransportKind
  readonly slowLog: SlowLog
  /** True while all clients together have more than `maxTotalOutputBytes` unread. */
  isFull = false
  readonly counters = { connections: 0, refused: 0, slowReaders: 0, idleClosed: 0 }
  /** True while a CLIENT PAUSE may hold up connections. */
  isIsolated = false
  readonly #options: ResolvedProxyOptions
  readonly #mode: UpstreamMode
  readonly #world: ProxyWorld
  readonly #topology: UpstreamTopology | undefined
  readonly #node: UpstreamNode
  readonly #watch: UpstreamWatch
  #isolation: TimerHandle | undefined
  #publish: ((news: ThreadNews) => void) | undefined
  readonly #sweep: TimerHandle
  /** The port that the proxy listens on. */
  port = 0

  constructor(options: ResolvedProxyOptions, mode: UpstreamMode, world: ProxyWorld) {
    const { transports, runtime = systemRuntime, place = alone() } = world
    this.runtime = runtime
    this.turn = new Turn(runtime)
    this.#options = options
    this.#mode = mode
    this.#world = world
    this.#counts = new ThreadCounts(place.index, place.memory)
    this.roster = new ClientRoster(this.clients, place.index, place.count, runtime)
    this.maxRequestBytes = options.maxRequestBytes
    this.maxHeldBytes = options.maxHeldBytes
    // Below this a socket does not report that it has sent everything.
    this.maxOutputBytes = Math.max(options.maxOutputBytes, 65_536)
    this.maxInFlight = options.maxInFlight
    this.slowReaderMs = options.slowReaderMs
    this.transports = transports
    this.slowLog = new SlowLog(options.slowLogLength)
    this.#users = options.users && new ProxyUsers(options.users, options.identity)
    this.users = this.#users && new LogIn(this.#users, runtime, options.logger)
    const settings: NodeSettings = {
      transports,
      connectWaitMs: mode !== 'single' ? Math.min(options.connectWaitMs, 300) : options.connectWaitMs,
      maxIdleConnections: options.maxIdleConnections,
      idleConnectionMs: options.idleConnectionMs,
      runtime,
      turn: this.turn,
      slowMs: options.slowLogMs,
      onSlow: (node, commandId, elapsedMs, asker) => this.#slow(node, commandId, elapsedMs, asker),
      onCut: (node, identity) => this.#removedUsers.check(node, identity, this.turn.nowMs),
    }
    if (mode !== 'single') {
      const topology =
        mode === 'cluster'
          ? new ClusterTopology(options.targets, options.identity, settings)
          : new SentinelTopology({
              sentinels: options.targets,
              group: options.sentinelGroup,
              identity: identityOf(undefined, options.sentinelPassword),
              settings,
            })
      this.#topology = topology
      this.cluster = { topology, retryForMs: options.retryForMs }
    }
    this.#node = new UpstreamNode(options.targets[0]!, settings)
    this.strangerAccess = new StrangerAccess(runtime, transports, () => this.node.target)
    this.strangerAccess.refresh()
    this.#watch = new UpstreamWatch({ state: this.serviceState, settings, logger: options.logger })
    if (options.shield !== undefined && !isOffByEnvironment()) {
      const { redisClusterId = this.#node.address, ...shieldOptions } = options.shield
      this.#shield = new Shield({ agent: `proxy/${version}`, runtime, ...shieldOptions })
      const cluster = this.#shield.cluster(redisClusterId, new ProxyUpstream(this, options.identity))
      cluster.limitRedis = new ProxyRedis(this)
      this.shield = new ProxyShield(cluster, this, options.identity)
    }
    this.#sweep = runtime.timers.setInterval(() => this.#tick(), 100)
  }

  get node(): UpstreamNode {
    return this.#topology?.masters[0] ?? this.#node
  }

  get isCluster(): boolean {
    return this.#topology?.isSpread === true
  }

  targetOf(slot: number): ConnectTarget {
    return this.nodeFor(slot).target
  }

  nodeFor(slot: number): UpstreamNode {
    return this.#topology?.nodeOf(slot) ?? this.#node
  }

  moved(slot: number, host: string, port: number, asked: UpstreamNode): UpstreamNode {
    return this.#topology?.moved(slot, host, port, asked) ?? this.#node
  }

  /** Shares what all threads have to know with the others; returns the function that receives their news. */
  share(publish: (news: ThreadNews) => void): (news: ThreadNews) => void {
    if (this.#shield !== undefined) this.#shield.onClaim = (claim) => publish({ claim })
    if (this.shield !== undefined) this.shield.onUntold = () => publish('forget')
    this.#publish = publish
    this.roster.publish = (roster) => publish({ roster })
    return (news) => {
      if (news === 'forget') this.shield?.forget()
      else if ('claim' in news) this.#shield?.takeClaim(news.claim)
      else if ('roster' in news) this.roster.take(news.roster)
      else this.#isolate(news.pausedMs)
    }
  }

  refresh(): void {
    void this.#topology?.refresh()
  }

  /** The proxy's own identity to Redis, from its address. */
  get serviceState(): ConnectionState {
    return { identity: this.#options.identity, version: 2, database: 0 }
  }

  /** Resolves once the proxy knows where to send requests. */
  async ready(): Promise<void> {
    await this.#topology?.refresh()
  }

  /** Accepts a connected client; `attach` makes its transport. It may have presented a certificate with names. */
  accept(attach: (client: ClientConnection) => Transport, certificateNames: readonly string[] = []): void {
    this.counters.connections++
    // The last event may be long ago, and the client would get its time.
    this.turn.read()
    const { identity, database } = this.#options
    const users = this.#users
    const shown = users?.ofCertificate(certificateNames)
    const session =
      users === undefined
        ? new Session(identity, database, true)
        : shown !== undefined
          ? new Session(shown.identity, database, true, shown.name)
          : new Session(users.isOpen ? users.openIdentity : nobody, database, users.isOpen, 'default')
    const client = new ClientConnection(this.roster.nextId(), this, session)
    const transport = attach(client)
    client.attach(transport)
    if (!this.#counts.admit(this.#options.maxClients)) {
      this.counters.refused++
      transport.write(Buffer.from('-ERR max number of clients reached\r\n'))
      transport.end()
      return
    }
    this.clients.add(client)
    this.#strangers.add(client)
  }

  isolate(forMs: number): void {
    this.#publish?.({ pausedMs: forMs })
    this.#isolate(forMs)
  }

  #isolate(forMs: number): void {
    this.#isolation?.cancel()
    this.isIsolated = forMs > 0
    if (forMs <= 0) return
    const waitMs = Math.min(forMs + 100, 2 ** 31 - 1)
    this.#isolation = this.runtime.timers.setTimeout(() => {
      this.isIsolated = false
    }, waitMs)
  }

  infoSection(): string {
    const nodes = this.#nodes()
    const count = (of: (node: UpstreamNode) => number) => nodes.reduce((sum, node) => sum + of(node), 0)
    const lines = [
      '# Firebreak',
      `firebreak_version:${version}`,
      `firebreak_mode:${this.#mode}`,
      `firebreak_thread:${this.#world.threadId ?? 0}`,
      `firebreak_transport:${this.#options.transport}`,
      `firebreak_clients:${this.clients.size}`,
      `firebreak_connections_received:${this.counters.connections}`,
      `firebreak_connections_refused:${this.counters.refused}`,
      `firebreak_upstream_shared:${count((node) => node.sharedCount)}`,
      `firebreak_upstream_owned:${count((node) => node.ownedCount)}`,
      `firebreak_upstream_idle:${count((node) => node.idleCount)}`,
      `firebreak_upstream_away:${this.#serving().filter(({ health }) => health.isUp !== true).length}`,
      `firebreak_upstream_lost:${count((node) => node.health.lostCount)}`,
      `firebreak_output_full:${this.isFull ? 1 : 0}`,
      `firebreak_paused:${this.isIsolated ? 1 : 0}`,
      `firebreak_slow_readers_closed:${this.counters.slowReaders}`,
      `firebreak_idle_closed:${this.counters.idleClosed}`,
      `firebreak_strangers_closed:${this.#strangers.closed}`,
      `firebreak_wrong_passwords:${this.users?.failures ?? 0}`,
      `firebreak_slow_requests:${this.slowLog.total}`,
      ...this.#shieldInfo(),
    ]
    return `${lines.join('\r\n')}\r\n`
  }

  /** This thread's metrics. */
  families(): MetricFamily[] {
    const { clients, counters, slowLog, isFull, isIsolated } = this
    const limited = this.shield?.limited
    const [nodes, serving] = [this.#nodes(), this.#serving()]
    const wrongPasswords = this.users?.failures ?? 0
    const own = proxyFamilies({
      clients,
      counters: { ...counters, wrongPasswords, strangersClosed: this.#strangers.closed },
      slowLog,
      isFull,
      isIsolated,
      limited,
      nodes,
      serving,
    })
    return [...own, ...(this.#shield?.families() ?? [])]
  }

  onlyNode({ transport }: ProxyClient): OnlyNode | undefined {
    if (!this.#options.asCluster && !this.isCluster) return undefined
    const { announce, host } = this.#options
    // It is the same node, whatever address a client has reached.
    const known = announce ?? { host, port: this.port }
    const id = createHash('sha1').update(`${known.host}:${known.port}`).digest('hex')
    return { ...announcedPlace(this.#options, this.port, transport.local), id }
  }

  onClientGone(client: ClientConnection): void {
    this.#strangers.delete(client)
    if (this.clients.delete(client)) this.#counts.dismiss()
  }

  onSlowReader(client: ClientConnection): void {
    this.counters.slowReaders++
    client.destroy()
  }

  get observed(): Observed {
    return this
  }

  *latencies(): Generator<readonly [string, LatencyTable]> {
    for (const node of this.#nodes()) yield [node.address, node.latency]
  }

  /** Serves connected clients until the last has disconnected, but at most for `forMs`. */
  async linger(forMs: number): Promise<void> {
    const { clock, timers } = this.runtime
    const deadline = clock.now() + forMs
    while (this.clients.size > 0 && clock.now() < deadline) {
      await new Promise<void>((resolve) => timers.setTimeout(resolve, 50))
    }
  }

  /** Closes clients as they become idle, and all others after `forMs`. */
  async drain(forMs: number): Promise<void> {
    const { clock, timers } = this.runtime
    const deadline = clock.now() + forMs
    while (this.clients.size > 0 && clock.now() < deadline) {
      for (const client of [...this.clients]) if (client.isIdle || isListening(client)) client.endAfterReplies()
      await new Promise<void>((resolve) => timers.setTimeout(resolve, 10))
    }
  }

  close(): void {
    this.#sweep.cancel()
    this.#watch.close()
    this.#shield?.close()
    this.#isolation?.cancel()
    for (const client of [...this.clients]) client.destroy()
    this.#topology?.close()
    this.#node.close()
  }

  #nodes(): UpstreamNode[] {
    return this.#topology === undefined ? [this.#node] : [...this.#topology.nodes]
  }

  /** The nodes that requests currently go to. */
  #serving(): readonly UpstreamNode[] {
    return this.#topology?.masters ?? [this.#node]
  }

  #shieldInfo(): string[] {
    const { shield } = this
    if (shield === undefined) return ['firebreak_shield:none']
    const { rejected, waited, stale } = shield.limited
    return [
      `firebreak_shield:${shield.isActive ? 'on' : 'off'}`,
      `firebreak_hub:${this.#shield!.isConnected ? 'connected' : 'lost'}`,
      `firebreak_local_hits:${shield.localHits}`,
      `firebreak_combined:${shield.combined}`,
      `firebreak_limited_rejected:${rejected}`,
      `firebreak_limited_waited:${waited}`,
      `firebreak_limited_stale:${stale}`,
    ]
  }

  #slow(node: UpstreamNode, commandId: number, elapsedMs: number, asker: ReplyTarget): void {
    // What the proxy tells of itself only asks whether it may.
    if (proxyCommands[commandId]!.way === 'own') return
    const client = asker instanceof ClientConnection ? asker : undefined
    this.slowLog.add({
      atMs: this.runtime.wallClock.now(),
      elapsedMs,
      command: proxyCommands[commandId]!.name,
      node: node.address,
      client: client?.transport.peer ?? '',
      clientName: client?.session.name ?? '',
    })
  }

  #weigh(): void {
    let unread = 0
    for (const client of this.clients) unread += client.backlog.bytes
    const { maxTotalOutputBytes } = this.#options
    const wasFull = this.isFull
    this.isFull = this.#counts.weigh(unread) > (wasFull ? maxTotalOutputBytes / 2 : maxTotalOutputBytes)
    if (wasFull && !this.isFull) for (const client of this.clients) client.onDrain()
  }

  /**
   * While Redis accepts nothing, each client may only have a few requests in flight, so that others are not held up.
   */
  #unclog(): void {
    const { maxInFlight, maxQueuedBytes } = this.#options
    const wasClogged = this.maxInFlight < maxInFlight
    const queued = this.#nodes().reduce((sum, { queuedBytes }) => sum + queuedBytes, 0)
    this.maxInFlight =
      queued > (wasClogged ? maxQueuedBytes / 2 : maxQueuedBytes) ? Math.min(maxInFlight, cloggedInFlight) : maxInFlight
    if (wasClogged && this.maxInFlight === maxInFlight) for (const client of this.clients) client.goOn()
  }

  #tick(): void {
    this.#weigh()
    this.#unclog()
    for (const node of this.#nodes()) node.sweep()
    const nowMs = this.runtime.clock.now()
    this.#watch.tick(this.#serving(), nowMs)
    const { idleTimeoutMs, authTimeoutMs } = this.#options
    this.#strangers.closeOlder(nowMs - authTimeoutMs)
    if (idleTimeoutMs === 0) return
    const oldest = nowMs - idleTimeoutMs
    for (const client of this.clients) {
      if (client.isIdle && client.lastActiveMs < oldest) {
        this.counters.idleClosed++
        client.destroy()
      }
    }
  }
}

/** Requests of one client in flight while Redis accepts nothing. */
const cloggedInFlight = 16

/** True for a subscriber with no other request pending: what it waits for never ends. */
function isListening({ slots, own: { pinned } }: ClientConnection): boolean {
  return slots.owed === 0 && pinned !== undefined && pinned.isSubscribed && pinned.inFlight === 0
}
