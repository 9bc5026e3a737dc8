import { type LookupAddress, lookup } from 'node:dns'
import { type AddressInfo, isIP } from 'node:net'
import { constants } from 'node:os'
import { systemTimers, type TimerHandle } from '@firebreak/core'
import { netTransports } from './net-transport.ts'
import { systemError } from './system-error.ts'
import {
  type ConnectTarget,
  keepAliveMs,
  type Transport,
  type TransportKind,
  type TransportOwner,
} from './transport.ts'

/**
 * Connections over the handles that Node's own sockets are built on. Streams, events and their bookkeeping are a
 * quarter of a small proxy's CPU (`bench/proxy.ts`: `p1-raw-cpu-vs-twemproxy`); here bytes arrive in one buffer for all
 * connections, and a write that the kernel accepts at once leaves nothing behind.
 *
 * These bindings are not part of Node's public interface. We check for each piece; if one is missing or looks
 * different, `rawTransports` is undefined and the proxy uses public sockets. TLS and unix sockets always do.
 */
interface TcpHandle {
  onread: () => void
  onconnection: ((status: number, handle: TcpHandle | undefined) => void) | undefined
  readStart(): number
  readStop(): number
  useUserBuffer(buffer: Buffer): void
  writeBuffer(request: WriteRequest, buffer: Buffer): number
  shutdown(request: ShutdownRequest): number
  setNoDelay(isOn: boolean): number
  setKeepAlive(isOn: boolean, delaySeconds: number): number
  close(callback?: () => void): void
  connect(request: ConnectRequest, address: string, port: number): number
  connect6(request: ConnectRequest, address: string, port: number): number
  bind(address: string, port: number, flags?: number): number
  bind6(address: string, port: number, flags?: number): number
  listen(backlog: number): number
  getpeername(out: Partial<AddressInfo>): number
  getsockname(out: Partial<AddressInfo>): number
}

interface WriteRequest {
  oncomplete: ((status: number) => void) | undefined
  buffer: Buffer | undefined
}

interface ShutdownRequest {
  oncomplete: ((status: number) => void) | undefined
}

interface ConnectRequest {
  oncomplete: ((status: number) => void) | undefined
}

interface Bindings {
  readonly TCP: new (kind: number) => TcpHandle
  readonly TCPConnectWrap: new () => ConnectRequest
  readonly constants: {
    readonly SOCKET: number
    readonly SERVER: number
    readonly UV_TCP_REUSEPORT?: number
  }
  readonly WriteWrap: new () => WriteRequest
  readonly ShutdownWrap: new () => ShutdownRequest
  readonly streamBaseState: Int32Array
  readonly kReadBytesOrError: number
  readonly kLastWriteWasAsync: number
}

const bindings = findBindings()
const readBuffer = bindings === undefined ? undefined : Buffer.allocUnsafeSlow(256 * 1024)

function findBindings(): Bindings | undefined {
  const { binding } = process as unknown as { binding?: (name: string) => Record<string, unknown> }
  if (typeof binding !== 'function') return undefined
  const { noDeprecation } = process
  try {
    process.noDeprecation = true
    const found = { ...binding('tcp_wrap'), ...binding('stream_wrap') } as unknown as Bindings
    const tcp = found.TCP?.prototype as Partial<TcpHandle> | undefined
    const methods = ['readStart', 'useUserBuffer', 'writeBuffer', 'shutdown', 'connect', 'bind', 'listen'] as const
    const isWhole =
      methods.every((name) => typeof tcp?.[name] === 'function') &&
      typeof found.TCPConnectWrap === 'function' &&
      typeof found.WriteWrap === 'function' &&
      typeof found.ShutdownWrap === 'function' &&
      typeof found.kReadBytesOrError === 'number' &&
      typeof found.kLastWriteWasAsync === 'number' &&
      typeof found.streamBaseState?.length === 'number'
    return isWhole ? found : undefined
  } catch {
    return undefined
  } finally {
    process.noDeprecation = noDeprecation ?? false
  }
}

let spareRequest: WriteRequest | undefined
const ignoreRead = () => {}
/** What a handle reads once its peer has closed its side. */
const endOfFile = -4095
const timedOut = -constants.errno.ETIMEDOUT

class RawTransport implements Transport {
  /** Undefined until it is connected, and after its end. */
  #handle: TcpHandle | undefined
  #isClosed = false
  readonly #owner: TransportOwner
  #isReading = false
  #isFinished = false
  #closesThen = false
  #pending = 0
  queuedBytes = 0
  /**
   * The slow log asks for it with each slow request, and on a busy machine all are slow: cached after one system call.
   */
  #peer: string | undefined

  /** An accepted one has its handle; one that connects takes it later. */
  constructor(owner: TransportOwner, handle?: TcpHandle) {
    this.#owner = owner
    this.#handle = handle
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get peer(): string {
    if (this.#peer === undefined && this.#handle !== undefined) this.#peer = this.#place('getpeername')
    return this.#peer ?? ''
  }

  get local(): string {
    return this.#place('getsockname')
  }

  #place(of: 'getpeername' | 'getsockname'): string {
    const out: Partial<AddressInfo> = {}
    if (this.#handle === undefined || this.#handle[of](out) !== 0) return ''
    return out.family === 'IPv6' ? `[${out.address}]:${out.port}` : `${out.address}:${out.port}`
  }

  connected(handle: TcpHandle): void {
    this.#handle = handle
    this.start()
  }

  start(): void {
    const handle = this.#handle!
    const { streamBaseState, kReadBytesOrError } = bindings!
    handle.setNoDelay(true)
    handle.setKeepAlive(true, keepAliveMs / 1000)
    handle.useUserBuffer(readBuffer!)
    handle.onread = () => {
      const length = streamBaseState[kReadBytesOrError]!
      if (length > 0) this.#owner.onData(readBuffer!, length)
      else if (length === endOfFile && this.#owner.onEnd !== undefined) this.#owner.onEnd()
      else if (length < 0) this.#closed(length === endOfFile ? undefined : systemError('read', length))
    }
    this.resume()
  }

  write(bytes: Buffer): boolean {
    const handle = this.#handle
    if (handle === undefined || this.#isFinished) return true
    const request = spareRequest ?? new bindings!.WriteWrap()
    spareRequest = undefined
    const status = handle.writeBuffer(request, bytes)
    if (status !== 0) {
      // Reported later, as a socket would: the writer is in the middle of something.
      setImmediate(() => this.fail('write', status))
      return true
    }
    if (bindings!.streamBaseState[bindings!.kLastWriteWasAsync] === 0) {
      spareRequest = request
      return true
    }
    this.#pending++
    this.queuedBytes += bytes.length
    request.buffer = bytes
    request.oncomplete = (failure) => this.#written(request, bytes.length, failure)
    return false
  }

  pause(): void {
    if (this.#isReading) this.#handle?.readStop()
    this.#isReading = false
  }

  resume(): void {
    if (this.#isReading || this.#handle === undefined) return
    this.#isReading = true
    this.#handle.readStart()
  }

  finish(): void {
    this.#isFinished = true
    // One that is not connected has nothing to send.
    if (this.#handle === undefined) this.#closed(undefined)
    else if (this.#pending === 0) this.#shutDown()
  }

  end(): void {
    this.#closesThen = true
    this.finish()
  }

  destroy(): void {
    this.#closed(undefined)
  }

  /** Closes it because no connection could be made. */
  closeFor(error: Error): void {
    this.#closed(error)
  }

  /** Closes it because of the result of a system call. */
  fail(call: string, status: number, place?: string): void {
    this.#closed(systemError(call, status, place))
  }

  #shutDown(): void {
    const handle = this.#handle
    if (handle === undefined) return
    const request = new bindings!.ShutdownWrap()
    request.oncomplete = () => {
      if (this.#closesThen) this.#closed(undefined)
    }
    if (handle.shutdown(request) !== 0) this.#closed(undefined)
  }

  #written(request: WriteRequest, length: number, status: number): void {
    request.buffer = undefined
    this.#pending--
    this.queuedBytes -= length
    if (this.#handle === undefined) return
    if (status < 0) this.fail('write', status)
    else if (this.#pending === 0) {
      if (this.#isFinished) this.#shutDown()
      this.#owner.onDrain()
    }
  }

  #closed(error: Error | undefined): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const handle = this.#handle
    this.#handle = undefined
    this.queuedBytes = 0
    if (handle !== undefined) {
      handle.onread = ignoreRead
      handle.close()
    }
    this.#owner.onClose(error)
  }
}

/** How long an address may take while there is another to try, as for Node's own sockets. */
const attemptMs = 250

/**
 * Connects a transport to a host: to its addresses one after the other, in the resolver's order. Whatever fails is told by
 * the first address' error.
 */
class RawConnect {
  readonly #transport: RawTransport
  readonly #port: number
  readonly #onConnect: () => void
  #addresses: readonly LookupAddress[] = []
  #failure: { readonly status: number; readonly place: string } | undefined

  constructor(transport: RawTransport, { host, port }: ConnectTarget, onConnect: () => void) {
    this.#transport = transport
    this.#port = port
    this.#onConnect = onConnect
    const family = isIP(host)
    if (family !== 0) {
      this.#addresses = [{ address: host, family }]
      this.#try(0)
      return
    }
    lookup(host, { all: true }, (error, addresses) => {
      if (error !== null) transport.closeFor(error)
      else {
        this.#addresses = addresses
        this.#try(0)
      }
    })
  }

  #try(index: number): void {
    if (this.#transport.isClosed) return
    const found = this.#addresses[index]
    if (found === undefined) {
      const { status, place } = this.#failure!
      this.#transport.fail('connect', status, place)
      return
    }
    const { address, family } = found
    const place = family === 6 ? `[${address}]:${this.#port}` : `${address}:${this.#port}`
    const handle = new bindings!.TCP(bindings!.constants.SOCKET)
    let timer: TimerHandle | undefined
    let isOver = false
    const end = (status: number) => {
      if (isOver) return
      isOver = true
      timer?.cancel()
      if (this.#transport.isClosed) handle.close()
      else if (status === 0) {
        this.#transport.connected(handle)
        this.#onConnect()
      } else {
        handle.close()
        this.#failure ??= { status, place }
        this.#try(index + 1)
      }
    }
    const request = new bindings!.TCPConnectWrap()
    request.oncomplete = end
    const connect = family === 6 ? handle.connect6 : handle.connect
    const status = connect.call(handle, request, address, this.#port)
    // Whoever asks for the connection does not have the transport yet.
    if (status !== 0) setImmediate(end, status)
    else if (index + 1 < this.#addresses.length) timer = systemTimers.setTimeout(() => end(timedOut), attemptMs)
  }
}

/** Raw connections, or undefined if this Node lacks what they need. */
export const rawTransports: TransportKind | undefined =
  bindings === undefined
    ? undefined
    : {
        connect(target: ConnectTarget, owner: TransportOwner, onConnect: () => void): Transport {
          if (target.path !== undefined || target.tls !== undefined)
            return netTransports.connect(target, owner, onConnect)
          const transport = new RawTransport(owner)
          new RawConnect(transport, target, onConnect)
          return transport
        },
      }

/** A server over raw handles. */
export interface RawServer {
  readonly port: number
  close(): void
}

/** Listens over raw handles; `accept` makes the owner of each connection. */
export function listenRaw(
  host: string,
  port: number,
  isPortShared: boolean,
  accept: (attach: (owner: TransportOwner) => Transport) => void,
): RawServer {
  const { TCP, constants } = bindings!
  const server = new TCP(constants.SERVER)
  const flags = isPortShared ? (constants.UV_TCP_REUSEPORT ?? 0) : 0
  const status = host.includes(':') ? server.bind6(host, port, flags) : server.bind(host, port, flags)
  if (status !== 0) {
    server.close()
    throw Object.assign(systemError('listen', status, `${host}:${port}`), { port })
  }
  server.onconnection = (failure, handle) => {
    if (failure !== 0 || handle === undefined) return
    let transport: RawTransport | undefined
    accept((owner) => (transport = new RawTransport(owner, handle)))
    transport?.start()
  }
  const listening = server.listen(1024)
  if (listening !== 0) {
    server.close()
    throw Object.assign(systemError('listen', listening, `${host}:${port}`), { port })
  }
  const out: Partial<AddressInfo> = {}
  server.getsockname(out)
  return { port: out.port!, close: () => server.close() }
}
