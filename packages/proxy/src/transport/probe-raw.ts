import type { Runtime, TimerHandle } from '@firebreak/core'
import { listenRaw, type RawServer, rawTransports } from './raw-transport.ts'
import type { Transport, TransportKind, TransportOwner } from './transport.ts'

/** What a probe examines; other than this Node's own only in tests. */
export interface RawHandles {
  readonly transports: TransportKind | undefined
  readonly listen: typeof listenRaw
}

/** The raw handles of this Node. */
export const rawHandles: RawHandles = { transports: rawTransports, listen: listenRaw }

/** What has not arrived within this many turns of the loop, of this minimum length each, never will. */
const maxTurns = 40
const turnMs = 50
/** More pieces than a kernel accepts for a peer that does not read. */
const maxPieces = 128
const piece: Buffer = Buffer.alloc(256 * 1024, 'abcdefghijklmnopqrstuvwxyz')

/**
 * Checks whether raw handles on this Node do what the proxy relies on; returns the reason if they do not.
 *
 * They are not a public interface: another Node may use the same names with another meaning. So before they are used, a
 * connection goes through everything that clients cause, over loopback and with the code that serves clients:
 * accepting, addresses, bytes both ways, a peer that stops reading and resumes, one side ending while the other still
 * writes, a close, and a refused connection. It takes a few milliseconds.
 */
export async function probeRawHandles(
  { timers }: Pick<Runtime, 'timers'>,
  { transports, listen }: RawHandles = rawHandles,
): Promise<string | undefined> {
  if (transports === undefined) return 'this Node version does not have them'
  const probe = new Probe(transports, listen)
  let timer: TimerHandle | undefined
  const late = new Promise<never>((_, reject) => {
    let turns = 0
    // Turns, not time: on a busy machine a process may stall for seconds, with events waiting behind its timers.
    timer = timers.setInterval(() => {
      if (++turns === maxTurns) reject(new Error(`timed out after ${maxTurns * turnMs} ms waiting for ${probe.step}`))
    }, turnMs)
  })
  try {
    await Promise.race([probe.run(), late])
    return undefined
  } catch (error) {
    return (error as Error).message
  } finally {
    timer?.cancel()
    probe.close()
  }
}

/** One side of the checked connection: what was reported to it, and who waits for that. */
class Side implements TransportOwner {
  transport!: Transport
  received: Buffer[] = []
  receivedBytes = 0
  drains = 0
  hasEnded = false
  closed: { readonly error: Error | undefined } | undefined
  #wake = () => {}

  onData(bytes: Buffer, length: number): void {
    this.received.push(Buffer.from(bytes.subarray(0, length)))
    this.receivedBytes += length
    this.#wake()
  }

  onDrain(): void {
    this.drains++
    this.#wake()
  }

  onEnd(): void {
    this.hasEnded = true
    this.#wake()
  }

  onClose(error: Error | undefined): void {
    this.closed = { error }
    this.#wake()
  }

  /** Resolves once a condition holds; checked on each event of this side. */
  until(isSo: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        if (isSo()) resolve()
      }
      this.#wake()
    })
  }

  /** Resolves once as many bytes have arrived; throws if they differ. */
  async receive(bytes: Buffer): Promise<void> {
    await this.until(() => this.receivedBytes >= bytes.length)
    ensure(Buffer.concat(this.received).equals(bytes), 'the bytes received differ from those sent')
    this.received = []
    this.receivedBytes = 0
  }
}

class Probe {
  readonly #transports: TransportKind
  readonly #listen: typeof listenRaw
  readonly #client = new Side()
  readonly #server = new Side()
  #listener: RawServer | undefined
  /** What it is waiting for. */
  step = 'a connection'

  constructor(transports: TransportKind, listen: typeof listenRaw) {
    this.#transports = transports
    this.#listen = listen
  }

  async run(): Promise<void> {
    const port = await this.#connect()
    const [client, server] = [this.#client, this.#server]
    ensure(client.transport.peer === `127.0.0.1:${port}`, 'the address of a peer is wrong')
    ensure(client.transport.local === server.transport.peer, 'the two sides disagree about an address')
    await this.#send('a request', client, server)
    await this.#send('a reply', server, client)
    await this.#sendToSlowReader()
    this.step = 'the end of one side'
    client.transport.finish()
    await server.until(() => server.hasEnded)
    await this.#send('a reply after the end', server, client)
    this.step = 'a close'
    server.transport.end()
    await Promise.all([client.until(() => client.hasEnded), server.until(() => server.closed !== undefined)])
    ensure(server.closed?.error === undefined, 'a close is reported as a failure')
    this.#listener!.close()
    await this.#beRefused(port)
  }

  close(): void {
    this.#client.transport?.destroy()
    this.#server.transport?.destroy()
    this.#listener?.close()
  }

  async #connect(): Promise<number> {
    const [client, server] = [this.#client, this.#server]
    const accepted = new Promise<void>((resolve) => {
      this.#listener = this.#listen('127.0.0.1', 0, false, (attach) => {
        server.transport = attach(server)
        resolve()
      })
    })
    const { port } = this.#listener!
    const connected = new Promise<void>((resolve) => {
      client.transport = this.#transports.connect({ host: '127.0.0.1', port }, client, resolve)
    })
    await Promise.all([accepted, connected])
    return port
  }

  async #send(what: string, from: Side, to: Side): Promise<void> {
    this.step = what
    const bytes = Buffer.from(`${what}\r\n`)
    from.transport.write(bytes)
    await to.receive(bytes)
  }

  /**
   * Writes until the kernel accepts no more: the rest is counted, is sent once the peer reads, and that is reported.
   */
  async #sendToSlowReader(): Promise<void> {
    this.step = 'what a peer had not read'
    const [client, server] = [this.#client, this.#server]
    const { drains } = client
    server.transport.pause()
    const sent: Buffer[] = []
    let hasLeft = true
    while (hasLeft && sent.length < maxPieces) {
      sent.push(piece)
      hasLeft = client.transport.write(piece)
    }
    ensure(hasLeft === (client.transport.queuedBytes === 0), 'unsent bytes are not counted')
    server.transport.resume()
    await server.receive(Buffer.concat(sent))
    if (hasLeft) return
    await client.until(() => client.drains > drains)
    ensure(client.transport.queuedBytes === 0, 'sent bytes are still counted')
  }

  async #beRefused(port: number): Promise<void> {
    this.step = 'a refusal'
    const side = new Side()
    side.transport = this.#transports.connect({ host: '127.0.0.1', port }, side, () => {})
    await side.until(() => side.closed !== undefined)
    const { code } = (side.closed?.error ?? {}) as NodeJS.ErrnoException
    ensure(code === 'ECONNREFUSED', `a connection to a closed port was reported as ${code}`)
  }
}

function ensure(isSo: boolean, otherwise: string): void {
  if (!isSo) throw new Error(otherwise)
}
