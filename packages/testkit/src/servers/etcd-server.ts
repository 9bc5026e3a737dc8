import { join } from 'node:path'
import { freePort } from '../net/free-port.ts'
import { type GuardedChild, startChild, temporaryFolder } from '../process/child.ts'
import { startServer } from './start-server.ts'

/** How a test's etcd is started. */
export interface EtcdServerOptions {
  /** A fixed port, for a restart on the same one. @default a free port */
  readonly port?: number
  /** Its folder, for a restart with its data. @default a new temporary folder */
  readonly folder?: string
}

/** A real etcd of one member on loopback that dies with this process. */
export interface EtcdServer {
  readonly host: '127.0.0.1'
  readonly port: number
  /** `http://127.0.0.1:PORT`: gRPC and the JSON gateway under `/v3`. */
  readonly url: string
  readonly folder: string
  readonly child: GuardedChild
  /** Starts it again on the same port and data, after `stop` or a kill. */
  restart(): Promise<EtcdServer>
  stop(): Promise<void>
}

/** Starts an etcd and waits until it is healthy. */
export async function startEtcd(options: EtcdServerOptions = {}): Promise<EtcdServer> {
  const folder = options.folder ?? temporaryFolder('etcd')
  const peerPort = await freePort()
  const { port, child } = await startServer({
    name: 'etcd',
    port: options.port,
    launch: (port) => {
      const client = `http://127.0.0.1:${port}`
      const peer = `http://127.0.0.1:${peerPort}`
      return startChild('etcd', [
        `--data-dir=${join(folder, 'data')}`,
        `--listen-client-urls=${client}`,
        `--advertise-client-urls=${client}`,
        `--listen-peer-urls=${peer}`,
        `--initial-advertise-peer-urls=${peer}`,
        `--initial-cluster=default=${peer}`,
        // A lone member elects itself after one election timeout.
        '--heartbeat-interval=20',
        '--election-timeout=200',
      ])
    },
    answers: async (port) => {
      try {
        const response = await fetch(`http://127.0.0.1:${port}/health`, { signal: AbortSignal.timeout(1000) })
        return ((await response.json()) as { health?: string }).health === 'true'
      } catch {
        return false
      }
    },
    mayRetry: /address already in use/,
  })
  return {
    host: '127.0.0.1',
    port,
    url: `http://127.0.0.1:${port}`,
    folder,
    child,
    restart: async () => {
      await child.stop()
      return startEtcd({ ...options, port, folder })
    },
    stop: () => child.stop(),
  }
}
