import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { KafkaAddress } from '../report/kafka-reports.ts'

/** What kafkajs passes for a connection that it wants. */
interface WantedSocket {
  readonly host: string
  readonly port: number
  /** False: without TLS. */
  readonly ssl: object | false
  readonly onConnect: () => void
}

const keepAliveMs = 60_000

/**
 * The sockets of one kafkajs client. When told to disconnect, kafkajs forgets connections that it is still opening;
 * each would keep the process alive for as long as the broker does.
 */
export class KafkaSockets {
  readonly #open = new Set<Socket>()
  #isEnded = false

  /** kafkajs' option `socketFactory`. */
  readonly connect = ({ host, port, ssl, onConnect }: WantedSocket): Socket => {
    const name = isIP(host) === 0 ? { servername: host } : {}
    const socket =
      ssl === false ? connect({ host, port }, onConnect) : connectTls({ host, port, ...name, ...ssl }, onConnect)
    socket.setKeepAlive(true, keepAliveMs)
    this.#open.add(socket)
    socket.once('close', () => this.#open.delete(socket))
    if (this.#isEnded) socket.destroy(closed())
    return socket
  }

  /** Ends all sockets, including those still being opened. */
  end(): void {
    this.#isEnded = true
    for (const socket of this.#open) socket.destroy(closed())
  }
}

/** An error, because kafkajs ignores every other sign that its own side has ended a connection. */
const closed = () => new Error('closed')

/** The options of a kafkajs client that fails fast: its user retries and reports. */
export function kafkaClientOptions({ brokers, isTls, sasl }: KafkaAddress, sockets: KafkaSockets, timeoutMs: number) {
  return {
    brokers: [...brokers],
    ssl: isTls && {},
    // kafkajs types each mechanism separately.
    ...(sasl !== undefined && { sasl: sasl as { mechanism: 'plain'; username: string; password: string } }),
    connectionTimeout: timeoutMs,
    requestTimeout: timeoutMs,
    enforceRequestTimeout: true,
    socketFactory: sockets.connect,
  }
}
