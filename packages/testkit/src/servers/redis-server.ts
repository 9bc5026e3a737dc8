import { execFile } from 'node:child_process'
import { connect } from 'node:net'
import { promisify } from 'node:util'
import { freePort, freePorts } from '../net/free-port.ts'
import { type GuardedChild, startChild, temporaryFolder } from '../process/child.ts'
import { waitFor } from '../time/wait-for.ts'
import { isAtLeast, type ServerKind, serverKindOf } from './server-kind.ts'

const execute = promisify(execFile)

/** How a test's Redis is started. */
export interface RedisServerOptions {
  /** More arguments, as `['--maxmemory', '10mb']`. */
  readonly args?: readonly string[]
  /** A fixed port, for a restart on the same one. @default a free port */
  readonly port?: number
  /** Its working folder, for a restart with its data. @default a new temporary folder */
  readonly folder?: string
  /** @default as FIREBREAK_REDIS_SERVER names it, else 'redis-server' */
  readonly program?: string
}

/** The server that tests run on: another Redis, or a Valkey, where FIREBREAK_REDIS_SERVER names its program. */
export function redisProgram(): string {
  return process.env['FIREBREAK_REDIS_SERVER'] ?? 'redis-server'
}

/** Which server tests run on. */
export function redisKind(): ServerKind {
  return serverKindOf(redisProgram())
}

/** Some options are younger than the oldest server that is supported. */
const hasNewOptions = (program: string) => isAtLeast(serverKindOf(program), [7, 0])

/** A real redis-server on loopback that dies with this process. */
export interface RedisServer {
  readonly host: '127.0.0.1'
  readonly port: number
  readonly url: string
  readonly folder: string
  readonly child: GuardedChild
  /** Runs redis-cli against it and gives what it printed, without the last line end. */
  cli(...args: string[]): Promise<string>
  /** Starts it again on the same port and folder, after `stop` or a kill. */
  restart(args?: readonly string[]): Promise<RedisServer>
  stop(): Promise<void>
}

/** Starts a Redis without persistence on a free port and waits until it answers. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const folder = options.folder ?? temporaryFolder('redis')
  const program = options.program ?? redisProgram()
  // Another process may take the free port between our check and the server's bind: then pick another.
  for (let attempt = 0; ; attempt++) {
    const port = options.port ?? (await freePort())
    const child = startChild(
      program,
      [
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--dir',
        folder,
        '--save',
        '',
        '--appendonly',
        'no',
        '--daemonize',
        'no',
        ...(hasNewOptions(program) ? ['--enable-debug-command', 'yes'] : []),
        ...(options.args ?? []),
      ],
      { cwd: folder },
    )
    const isUp = await waitFor(
      async () => (await answers(port, child.pid)) || (child.process.exitCode !== null ? 'ended' : undefined),
      {
        what: () => `redis-server on port ${port}:\n${child.output()}`,
      },
    )
    if (isUp === 'ended') {
      if (attempt < 5 && options.port === undefined && child.output().includes('bind')) continue
      throw new Error(`redis-server ended at its start:\n${child.output()}`)
    }
    const server: RedisServer = {
      host: '127.0.0.1',
      port,
      url: `redis://127.0.0.1:${port}`,
      folder,
      child,
      cli: (...args) => redisCli(port, ...args),
      restart: (args) => startRedis({ ...options, port, folder, args: args ?? options.args ?? [] }),
      stop: () => child.stop(),
    }
    return server
  }
}

/** Runs redis-cli against a port and gives what it printed. */
export async function redisCli(port: number, ...args: string[]): Promise<string> {
  const { stdout } = await execute('redis-cli', ['-p', String(port), ...args], { maxBuffer: 64 << 20 })
  return stdout.replace(/\n$/, '')
}

/** True once the server of this process answers: another may have taken the port a moment before. */
function answers(port: number, pid: number): Promise<true | undefined> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\nINFO server\r\n'))
    socket.setTimeout(500)
    const end = (value: true | undefined) => {
      socket.destroy()
      resolve(value)
    }
    let text = ''
    // A server that loads its data answers -LOADING; one with a password answers -NOAUTH and is up.
    socket.on('data', (data) => {
      text += data.toString('latin1')
      if (text.startsWith('-NOAUTH')) end(true)
      else if (!text.startsWith('+PONG')) end(undefined)
      else if (/\nprocess_id:\d+\r/.test(text)) end(text.includes(`\nprocess_id:${pid}\r`) || undefined)
    })
    socket.on('error', () => end(undefined))
    socket.on('timeout', () => end(undefined))
  })
}

/** A real Redis Cluster on loopback. */
export interface RedisCluster {
  readonly nodes: readonly RedisServer[]
  readonly addresses: readonly { host: string; port: number }[]
  stop(): Promise<void>
}

/** A port and its bus; before Redis 7.0 the bus is 10,000 above, and the port must leave room for that. */
export async function clusterPorts(): Promise<[port: number, busPort: number | undefined]> {
  if (hasNewOptions(redisProgram())) return (await freePorts(2)) as [number, number]
  for (;;) {
    const port = await freePort()
    if (port + 10_000 < 65_536) return [port, undefined]
  }
}

/** Starts a cluster of a single node that has every slot. Before Redis 7.0 slots are given one by one. */
export async function startClusterOfOne(): Promise<RedisServer> {
  const [port, busPort] = await clusterPorts()
  const bus = busPort === undefined ? [] : ['--cluster-port', String(busPort)]
  const node = await startRedis({ port, args: ['--cluster-enabled', 'yes', ...bus] })
  await node.cli('CLUSTER', 'ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => String(slot)))
  await waitFor(async () => (await node.cli('CLUSTER', 'INFO')).includes('cluster_state:ok'))
  return node
}

/** Starts a cluster of masters (and replicas of each) and waits until every node says that it is whole. */
export async function startCluster(
  options: { masters?: number; replicas?: number; args?: readonly string[] } = {},
): Promise<RedisCluster> {
  const { masters = 3, replicas = 0, args = [] } = options
  const count = masters * (1 + replicas)
  const nodes: RedisServer[] = []
  for (let index = 0; index < count; index++) {
    const [port, busPort] = await clusterPorts()
    nodes.push(
      await startRedis({
        port,
        args: [
          '--cluster-enabled',
          'yes',
          ...(busPort === undefined ? [] : ['--cluster-port', String(busPort)]),
          // With nobody to fail over to, a node that is slow for a moment must not take the cluster down.
          '--cluster-node-timeout',
          replicas === 0 ? '10000' : '1500',
          '--cluster-config-file',
          'nodes.conf',
          ...args,
        ],
      }),
    )
  }
  const addresses = nodes.map(({ host, port }) => ({ host, port }))
  await execute('redis-cli', [
    '--cluster',
    'create',
    ...addresses.map(({ host, port }) => `${host}:${port}`),
    '--cluster-replicas',
    String(replicas),
    '--cluster-yes',
  ])
  for (const node of nodes) {
    await waitFor(
      async () => {
        const info = await node.cli('CLUSTER', 'INFO')
        return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${count}`)
      },
      { timeoutMs: 30_000, everyMs: 50, what: `cluster node ${node.port} to be whole` },
    )
  }
  return {
    nodes,
    addresses,
    async stop() {
      await Promise.all(nodes.map((node) => node.child.stop(500)))
    },
  }
}
