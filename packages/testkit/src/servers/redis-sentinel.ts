import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../net/free-port.ts'
import { type GuardedChild, startChild, temporaryFolder } from '../process/child.ts'
import { waitFor } from '../time/wait-for.ts'
import { type RedisServer, redisCli, redisProgram, startRedis } from './redis-server.ts'

/** A master with replicas under the eyes of real Sentinels. */
export interface RedisSentinel {
  /** The name under which the Sentinels know the master. */
  readonly name: string
  /** The master first, as it was at the start. */
  readonly servers: readonly RedisServer[]
  readonly sentinels: readonly { readonly host: string; readonly port: number }[]
  /** The port of the master as the first Sentinel sees it now. */
  masterPort(): Promise<number>
  /** Makes the Sentinels promote a replica, and waits until they agree on it. */
  failover(): Promise<void>
  stop(): Promise<void>
}

/** Starts a master, its replicas and the Sentinels, and waits until every Sentinel sees all of them. */
export async function startSentinel(options: { replicas?: number; sentinels?: number } = {}): Promise<RedisSentinel> {
  const { replicas = 1, sentinels: sentinelCount = 3 } = options
  const name = 'main'
  // Any of them may become the master; a replica then starts at once.
  const args = ['--repl-diskless-sync-delay', '0']
  const master = await startRedis({ args })
  const servers = [master]
  for (let index = 0; index < replicas; index++) {
    const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port), ...args] })
    await waitFor(async () => (await replica.cli('INFO', 'replication')).includes('master_link_status:up'), {
      what: `the replica on port ${replica.port} to have its master's data`,
    })
    servers.push(replica)
  }
  const watchers = await Promise.all(
    Array.from({ length: sentinelCount }, () =>
      startSentinelProcess([
        `sentinel monitor ${name} 127.0.0.1 ${master.port} ${Math.floor(sentinelCount / 2) + 1}`,
        // Only `failover()` changes the master: a busy machine must not make the Sentinels promote one by themselves.
        `sentinel down-after-milliseconds ${name} 60000`,
        `sentinel failover-timeout ${name} 5000`,
      ]),
    ),
  )
  const sentinel = (...words: string[]) => redisCli(watchers[0]!.port, 'SENTINEL', ...words)
  const masterPort = async () => Number((await sentinel('GET-MASTER-ADDR-BY-NAME', name)).split('\n')[1])
  for (const { port } of watchers) {
    await waitFor(
      async () => {
        const info = await redisCli(port, 'INFO', 'sentinel')
        return info.includes(`slaves=${replicas},sentinels=${sentinelCount}`) && info.includes('status=ok')
      },
      { timeoutMs: 30_000, everyMs: 50, what: `the Sentinel on port ${port} to see all others` },
    )
  }
  return {
    name,
    servers,
    sentinels: watchers.map(({ port }) => ({ host: '127.0.0.1', port })),
    masterPort,
    async failover() {
      const before = await masterPort()
      await waitFor(async () => (await sentinel('FAILOVER', name)) === 'OK', {
        everyMs: 100,
        what: 'a failover to start',
      })
      for (const { port } of watchers) {
        await waitFor(
          async () => {
            const address = await redisCli(port, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)
            return Number(address.split('\n')[1]) !== before
          },
          { timeoutMs: 30_000, everyMs: 50, what: 'the Sentinels to agree on the new master' },
        )
      }
    },
    async stop() {
      await Promise.all([...watchers, ...servers].map(({ child }) => child.stop(500)))
    },
  }
}

interface SentinelProcess {
  readonly port: number
  readonly child: GuardedChild
}

/** A Sentinel keeps its state in its configuration file, so it needs one that it can write. */
async function startSentinelProcess(lines: readonly string[]): Promise<SentinelProcess> {
  const port = await freePort()
  const folder = temporaryFolder('sentinel')
  const file = join(folder, 'sentinel.conf')
  writeFileSync(file, [`port ${port}`, 'bind 127.0.0.1', `dir ${folder}`, ...lines, ''].join('\n'))
  const child = startChild(redisProgram(), [file, '--sentinel'], { cwd: folder })
  await waitFor(async () => (await redisCli(port, 'PING').catch(() => '')) === 'PONG', {
    what: () => `a Sentinel on port ${port}:\n${child.output()}`,
  })
  return { port, child }
}
