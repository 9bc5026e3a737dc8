import { connect } from 'node:net'
import { type GuardedChild, startChild } from '../process/child.ts'
import { waitFor } from '../time/wait-for.ts'

/** A Kafka broker on loopback that dies with this process: librdkafka's mock cluster, which lives inside `kcat`. */
export interface KafkaBroker {
  /** `127.0.0.1:PORT` */
  readonly address: string
  /** `kafka://127.0.0.1:PORT` */
  readonly url: string
  readonly child: GuardedChild
  stop(): Promise<void>
}

/** Starts a broker and waits until it accepts connections. It keeps its messages in memory, and makes topics when they are asked for. */
export async function startKafka(): Promise<KafkaBroker> {
  const flags = ['-b', 'unused', '-X', 'test.mock.num.brokers=1', '-X', 'debug=mock', '-P', '-t', 'warm']
  // It ends with its input, which stays open as long as we live.
  const child = startChild('kcat', flags, { stdio: ['pipe', 'pipe', 'pipe'] })
  const [, address] = await child.printed(/bootstrap\.servers=(127\.0\.0\.1:\d+)/)
  await waitFor(() => accepts(address!))
  return { address: address!, url: `kafka://${address}`, child, stop: () => child.stop() }
}

function accepts(address: string): Promise<boolean> {
  const [host, port] = address.split(':') as [string, string]
  return new Promise((resolve) => {
    const socket = connect(Number(port), host)
    const end = (isUp: boolean) => {
      socket.destroy()
      resolve(isUp)
    }
    socket.on('connect', () => end(true))
    socket.on('error', () => end(false))
  })
}
