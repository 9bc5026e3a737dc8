import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type GuardedChild, startChild, temporaryFolder } from '../process/child.ts'
import { startServer } from './start-server.ts'

/** How a test's ZooKeeper is started. */
export interface ZooKeeperServerOptions {
  /** ZooKeeper's unit of time: sessions may last 2 to 20 of them. @default 200 */
  readonly tickTimeMs?: number
  /** A fixed port, for a restart on the same one. @default a free port */
  readonly port?: number
  /** Its folder, for a restart with its data. @default a new temporary folder */
  readonly folder?: string
}

/** A real ZooKeeper on loopback that dies with this process. */
export interface ZooKeeperServer {
  readonly host: '127.0.0.1'
  readonly port: number
  /** `127.0.0.1:PORT`, as clients take it. */
  readonly address: string
  readonly folder: string
  readonly child: GuardedChild
  /** Sends a four-letter word (`ruok`, `mntr`, `cons`) and gives the answer. */
  ask(word: string): Promise<string>
  /** Starts it again on the same port and data, after `stop` or a kill. */
  restart(): Promise<ZooKeeperServer>
  stop(): Promise<void>
}

// Debian's jar names what it needs in its manifest; only the logger is ours to choose.
const classPath = '/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar'

/** Starts a ZooKeeper and waits until it answers `ruok`. */
export async function startZooKeeper(options: ZooKeeperServerOptions = {}): Promise<ZooKeeperServer> {
  const { tickTimeMs = 200 } = options
  const folder = options.folder ?? temporaryFolder('zookeeper')
  const { port, child } = await startServer({
    name: 'zookeeper',
    port: options.port,
    launch: (port) => {
      const config = join(folder, 'zoo.cfg')
      writeFileSync(
        config,
        [
          `tickTime=${tickTimeMs}`,
          `dataDir=${join(folder, 'data')}`,
          `clientPort=${port}`,
          'clientPortAddress=127.0.0.1',
          'admin.enableServer=false',
          'maxClientCnxns=0',
          '4lw.commands.whitelist=*',
          '',
        ].join('\n'),
      )
      // One thread of garbage collection and the quick compiler: it starts in half the time.
      const java = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xshare:auto', '-Xmx128m']
      const main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain'
      return startChild('java', [...java, '-Dzookeeper.forceSync=no', '-cp', classPath, main, config], { cwd: folder })
    },
    answers: async (port) =>
      (await fourLetters(port, 'ruok')) === 'imok' && !/not currently/.test(await fourLetters(port, 'srvr')),
    mayRetry: /BindException|Address already in use/,
  })
  return {
    host: '127.0.0.1',
    port,
    address: `127.0.0.1:${port}`,
    folder,
    child,
    ask: (word) => fourLetters(port, word),
    restart: async () => {
      await child.stop()
      return startZooKeeper({ ...options, port, folder })
    },
    stop: () => child.stop(),
  }
}

function fourLetters(port: number, word: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(word))
    socket.setTimeout(2000, () => socket.destroy())
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1')
    })
    socket.on('error', () => socket.destroy())
    socket.on('close', () => resolve(answer))
  })
}
