import { protect, unprotect } from '@firebreak/client'
import { defaultLocalCache, type Strategy } from '@firebreak/core'
import { type CommandRow, commandOfArgs, ListArgs } from '@firebreak/core/commands'
import { encodeCommand, type OpenPipe, RequestParser } from '@firebreak/core/resp'
import {
  type ClusterShield,
  type CombineListener,
  CombineOwner,
  Combining,
  type ConnectionFacts,
  type GateRequest,
  OpenState,
  readCommandOf,
  Shield,
  type Upstream,
  type Verdict,
} from '@firebreak/shield'
import { fakeRuntime } from '@firebreak/testkit'
import type { ClientConnection } from '../../packages/proxy/src/client/client-connection.ts'
import { proxyCommandOf } from '../../packages/proxy/src/commands/proxy-command.ts'
import type { PinnedLane } from '../../packages/proxy/src/lanes/pinned-lane.ts'
import { ReplySlots } from '../../packages/proxy/src/replies/reply-slots.ts'
import { ClientRequest } from '../../packages/proxy/src/requests/client-request.ts'
import { ProxyShield } from '../../packages/proxy/src/shield/proxy-shield.ts'
import { nobody } from '../../packages/proxy/src/upstream/identity.ts'
import type { ReplyTarget } from '../../packages/proxy/src/upstream/shared-lane.ts'

/** The key that is hot in these tests. */
export const hotKey = 'hot'

/** A server in memory that knows one value, for the shield's own connection. */
const memoryServer: OpenPipe = (owner) => {
  const parser = new RequestParser()
  queueMicrotask(() => owner.onOpen())
  return {
    write(bytes) {
      for (let at = 0; at < bytes.length; ) {
        at = parser.parse(bytes as Buffer, at, bytes.length)
        const name = Buffer.from(bytes.subarray(parser.startOf(0), parser.endOf(0))).toString()
        const reply = name === 'EXEC' ? '*2\r\n:-1\r\n$1\r\nv\r\n' : '+OK\r\n'
        queueMicrotask(() => owner.onData(Buffer.from(reply)))
      }
    },
    pause() {},
    resume() {},
    close() {},
  }
}

/** Runs everything that needs no timer. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A shield for one Redis in memory, with a stopped clock. */
export interface TestShield {
  readonly shield: Shield
  readonly cluster: ClusterShield
  /** The verdicts since they were last taken. */
  readonly verdicts: Verdict[]
}

export async function openShield(): Promise<TestShield> {
  const shield = new Shield({ hubs: [], tableFile: false, canaryMs: 0, maxKeys: 64, runtime: fakeRuntime() })
  const upstream: Upstream = {
    isCluster: false,
    nodeOf: () => 'memory',
    connect: () => memoryServer,
    credentials: () => ({}),
  }
  const cluster = shield.cluster('main', upstream)
  cluster.limitRedis = { topology: 'standalone' } as ClusterShield['limitRedis']
  // Every client reads the server in memory, whoever it is.
  const space = cluster.space.bind(cluster)
  cluster.space = (database) => space(database)
  cluster.forget = () => {}
  const { gate } = cluster
  const ask = gate.ask.bind(gate)
  const verdicts: Verdict[] = []
  gate.ask = (request, connection) => {
    const verdict = ask(request, connection)
    verdicts.push(verdict)
    return verdict
  }
  // The first use of a watcher creates it, and its greeting takes a few turns.
  handle(cluster, strategies.cached)
  for (let count = 0; count < 4; count++) {
    void cluster.space(0).hot.get(hotKey)?.watcher
    await settle()
  }
  return { shield, cluster, verdicts }
}

/** Makes the key hot again under this strategy; undefined: it is not hot. */
export function handle(cluster: ClusterShield, strategy: Strategy | undefined): void {
  cluster.setTable([])
  if (strategy === undefined) return
  const entry = { redisClusterId: 'main', key: hotKey, serviceId: '*', strategy, ruleId: 'r', level: 0, heat: 1 }
  cluster.setTable([{ ...entry, since: 0, until: 1e15 } as never])
}

/** The outcome of a command. */
export interface Outcome {
  readonly kind: Verdict['kind']
  /** True if it went to Redis. */
  readonly isSent: boolean
}

/** How a command is sent, besides its words; only some adapters have each of these facts. */
export interface How {
  readonly inPipeline?: boolean
  readonly signal?: AbortSignal
}

/** A new connection to Redis through one adapter. */
export interface Adapter {
  send(words: readonly string[], how?: How): Outcome
  /** Answers everything that was sent, and closes the connection. */
  close(): Promise<void>
}

export type AdapterName = 'gate' | 'ioredis' | 'node-redis' | 'proxy'

export const strategies = {
  cached: defaultLocalCache,
  refusing: limitOf('reject'),
  waiting: limitOf('wait'),
  stale: limitOf('stale'),
  combined: { strategy: 'Combine', maxCombined: 100 },
} as const satisfies Record<string, Strategy>

function limitOf(onLimit: 'reject' | 'wait' | 'stale'): Strategy {
  return { strategy: 'RateLimit', algorithm: 'fixedWindow', limit: 1, windowMs: 60_000, onLimit, scope: 'process' }
}

export function connectAdapter(name: AdapterName, test: TestShield): Adapter {
  const { verdicts } = test
  const transport = makers[name](test)
  return {
    send(words, how = {}) {
      verdicts.length = 0
      const isSent = transport.send(words, how)
      // An adapter that does not ask the gate has handled it alone: it is a cold command, or a GET that memory has.
      return { kind: verdicts[0]?.kind ?? (isSent ? 'pass' : 'answer'), isSent }
    },
    async close() {
      transport.close()
      await settle()
    },
  }
}

interface Transport {
  /** Sends a command; true if it was sent to Redis. */
  send(words: readonly string[], how: How): boolean
  /** Answers everything that was sent. */
  close(): void
}

const makers: Record<AdapterName, (test: TestShield) => Transport> = {
  gate: ({ cluster }) => {
    const ends: (() => void)[] = []
    const expect = (listener: CombineListener) => void ends.push(() => listener({ kind: 'lost', reason: 'closed' }))
    const facts = factsOf(cluster, expect)
    return {
      send(words, how) {
        const row = commandOfArgs(new ListArgs(words))
        if (row === undefined) return true
        const before = ends.length
        const verdict = cluster.gate.ask(requestOf(cluster, row, words, how, facts.owner!, expect), facts)
        if (verdict.kind === 'combined') return ends.length > before
        if (verdict.kind === 'guarded') ends.push(verdict.end)
        if (verdict.kind === 'hold') verdict.until.catch(() => {})
        return verdict.kind === 'pass' || verdict.kind === 'guarded' || verdict.kind === 'rewrite'
      },
      close() {
        for (const end of ends) end()
        facts.open.reset()
      },
    }
  },

  ioredis: ({ cluster, shield }) => {
    const sent: { resolve(value: unknown): void }[] = []
    const listeners = new Map<string, () => void>()
    const client = {
      status: 'ready',
      mode: 'normal',
      options: {},
      on: (event: string, listener: () => void) => listeners.set(event, listener),
      off() {},
      callBuffer() {},
      get() {},
      getBuffer() {},
      sendCommand: (command: (typeof sent)[0]) => void sent.push(command),
    }
    protect(client, { shield, redisClusterId: cluster.redisClusterId })
    const send = client.sendCommand as (...args: unknown[]) => void
    const stream = { isPipeline: true, destination: { redis: { status: 'ready' } }, write() {} }
    return {
      send([name, ...args], { inPipeline }) {
        const before = sent.length
        const command = { name: name!.toLowerCase(), args, resolve() {}, reject() {}, replyEncoding: 'utf8' }
        send(command, inPipeline ? stream : undefined)
        return sent.length > before
      },
      close() {
        for (const command of sent) command.resolve('OK')
        listeners.get('close')!()
        unprotect(client)
      },
    }
  },

  'node-redis': ({ cluster, shield }) => {
    const sent: (() => void)[] = []
    let isClosed = false
    const add = () => (isClosed ? Promise.resolve() : new Promise<void>((resolve) => sent.push(resolve)))
    const queue = { decoder: { constructor: FakeDecoder }, addCommand: add }
    const client = {
      _getQueue: () => queue,
      sendCommand: add,
      isOpen: true,
      // An open connection is asked which database it uses.
      isReady: false,
      on() {},
      off() {},
      eventNames: () => [],
      get() {},
    }
    Object.assign(client, { _self: client })
    protect(client, { shield, redisClusterId: cluster.redisClusterId })
    client.isReady = true
    return {
      send(words, { inPipeline, signal }) {
        const before = sent.length
        const addCommand = queue.addCommand as (words: readonly string[], options: object) => Promise<unknown>
        const chain = inPipeline ? { chainId: Symbol('chain') } : {}
        addCommand(words, { ...chain, ...(signal && { abortSignal: signal }) }).catch(() => {})
        return sent.length > before
      },
      close() {
        isClosed = true
        for (const resolve of sent) resolve()
        unprotect(client)
      },
    }
  },

  proxy: ({ cluster }) => {
    const shield = proxyShieldOf(cluster)
    const request = new ClientRequest(1 << 20)
    const slots = new ReplySlots({ put() {} })
    const client = {
      request,
      parser: request.parser,
      args: request.args,
      session: { version: 3 },
      slots,
      host: { turn: { nowMs: 0, mark() {} }, node: {} },
      lanes: { forCommands: () => lane },
      youngestHot: 0,
      gone: new AbortController().signal,
      isClosed: false,
      keySpace: () => shield.spaceOf(nobody, 0),
      answerNow() {},
      answer: (slot: number, bytes: Uint8Array) => slots.reply(slot, bytes, 0, bytes.length, true),
      hold() {},
      letGo() {},
      sendInto: (...[, , , reply]: [unknown, unknown, unknown, ReplyTarget]) => void sent.push(reply),
      onLost() {},
      onReply() {},
      waitForReplies: () => false,
    } as unknown as ClientConnection
    const sent: ReplyTarget[] = []
    // The connection that it shares with others, for commands that the shield itself sends.
    const lane = { send: (...[, , , reply]: [unknown, unknown, unknown, ReplyTarget]) => void sent.push(reply) }
    const ends: (() => void)[] = []
    const pinned = { whenSettled: (end: () => void) => ends.push(end) } as unknown as PinnedLane
    const target = { onReply() {} } as unknown as ReplyTarget
    return {
      send(words) {
        const bytes = encodeCommand(words) as Buffer
        request.parser.parse(bytes, 0, bytes.length)
        const command = proxyCommandOf(request.args)
        request.command = command
        const before = sent.length
        const seen = goesAlone(command.way)
          ? shield.seePinned(client, command, pinned)
          : shield.see(client, command, target)
        if (typeof seen === 'string') return sent.length > before
        slots.take()
        if (seen !== undefined) sent.push(seen)
        return true
      },
      close() {
        for (const reply of sent) reply.onReply(0, Buffer.from('-ERR\r\n'), 0, 6, true, 0x2d)
        for (const end of ends) end()
      },
    }
  },
}

const proxyShields = new WeakMap<ClusterShield, ProxyShield>()

/** The connection that all clients of a proxy share. */
function proxyShieldOf(cluster: ClusterShield): ProxyShield {
  const where = { isCluster: false, transports: {} as never, targetOf: () => ({}) as never, refresh() {} }
  const shield = proxyShields.get(cluster) ?? new ProxyShield(cluster, where, nobody)
  proxyShields.set(cluster, shield)
  return shield
}

/** Ways of the proxy over a connection of the client's own. */
const goesAlone = (way: string): boolean => ['borrow', 'pin', 'stay', 'pipe'].includes(way)

/** True if the proxy answers a command itself, or sends it without the shield, or alone: then it is only guarded. */
export function isProxysOwn(words: readonly string[]): boolean {
  const { way } = proxyCommandOf(new ListArgs(words))
  return goesAlone(way) || ['session', 'own', 'info'].includes(way)
}

class FakeDecoder {
  write(): void {}
}

/** The gate itself, asked without any adapter. */
function factsOf(cluster: ClusterShield, expect: (listener: CombineListener) => void): ConnectionFacts {
  const way = {
    send: (_words: unknown, _parts: unknown, listener: CombineListener) => expect(listener),
    defer: (callback: () => void) => setImmediate(callback),
  }
  const combining = new Combining(way, () => cluster.now())
  return {
    owner: new CombineOwner(),
    combining: () => combining,
    space: cluster.space(0),
    isReady: true,
    isPinned: false,
    open: new OpenState(),
    now: () => cluster.now(),
    select: () => () => {},
  }
}

function requestOf(
  cluster: ClusterShield,
  row: CommandRow,
  words: readonly string[],
  how: How,
  owner: CombineOwner,
  expect: (listener: CombineListener) => void,
): GateRequest {
  return {
    bytesAt: (index) => Buffer.from(words[index]!),
    partOf: (command) => ({
      command,
      owner,
      answer() {},
      fail() {},
      sendAlone: (_, listener) => expect(listener),
    }),
    row,
    args: new ListArgs(words),
    visit: (index) => cluster.space(0).hot.get(words[index]!),
    textAt: (index) => words[index]!,
    readOf: (_, keyIndex) => readCommandOf(row.name, words, keyIndex),
    whenLoaded: () => () => {},
    isAnswerable: how.signal === undefined,
    isHandshake: false,
    canWait: how.inPipeline !== true,
    signal: how.signal,
    turn: undefined,
  }
}
