import { connect } from 'node:net'
import { type GuardedChild, startChild, temporaryFolder } from '../process/child.ts'
import { startServer } from './start-server.ts'

/** How a test's nats-server is started. */
export interface NatsServerOptions {
  /** A fixed port, for a restart on the same one. @default a free port */
  readonly port?: number
  /** Its folder, for a restart with its streams. @default a new temporary folder */
  readonly folder?: string
  /** Asks clients for TLS, with this certificate. @default plain */
  readonly tls?: { readonly certFile: string; readonly keyFile: string }
}

/** A real nats-server with JetStream on loopback that dies with this process. */
export interface NatsServer {
  readonly host: '127.0.0.1'
  readonly port: number
  /** `nats://127.0.0.1:PORT` */
  readonly url: string
  readonly folder: string
  readonly child: GuardedChild
  /** Starts it again on the same port and streams, after `stop` or a kill. */
  restart(): Promise<NatsServer>
  stop(): Promise<void>
}

/** Starts a nats-server and waits until it greets. */
export async function startNats(options: NatsServerOptions = {}): Promise<NatsServer> {
  const folder = options.folder ?? temporaryFolder('nats')
  const { port, child } = await startServer({
    name: 'nats-server',
    port: options.port,
    launch: (port) =>
      startChild('nats-server', ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', folder, ...tlsFlags(options)]),
    answers: greets,
    mayRetry: /address already in use/,
  })
  return {
    host: '127.0.0.1',
    port,
    url: `nats://127.0.0.1:${port}`,
    folder,
    child,
    restart: async () => {
      await child.stop()
      return startNats({ ...options, port, folder })
    },
    stop: () => child.stop(),
  }
}

function tlsFlags({ tls }: NatsServerOptions): readonly string[] {
  return tls === undefined ? [] : ['--tls', '--tlscert', tls.certFile, '--tlskey', tls.keyFile]
}

/** A NATS server speaks first: one line that begins with INFO. */
function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.setTimeout(500)
    const end = (isUp: boolean) => {
      socket.destroy()
      resolve(isUp)
    }
    socket.on('data', (data) => end(data.toString('latin1').startsWith('INFO')))
    socket.on('error', () => end(false))
    socket.on('timeout', () => end(false))
  })
}
