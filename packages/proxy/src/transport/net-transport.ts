import { connect as connectTcp, type OnReadOpts, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import {
  type ConnectTarget,
  keepAliveMs,
  type Transport,
  type TransportKind,
  type TransportOwner,
} from './transport.ts'

/** A connection over Node's public sockets: TCP, TLS and unix sockets alike. */
export class NetTransport implements Transport {
  readonly #socket: Socket
  #isClosed = false

  /** A socket's chunks only share memory if it was told to read into one buffer. */
  constructor(socket: Socket, owner: TransportOwner) {
    this.#socket = socket
    let failure: Error | undefined
    // A socket that reads into one buffer never uses this path.
    socket.on('data', (chunk: Buffer) => owner.onData(chunk, chunk.length))
    // If nobody else listens and nothing is buffered, reads can bypass the stream's own buffer.
    const { push } = socket
    socket.push = (chunk: Buffer | null, encoding?: BufferEncoding) => {
      if (chunk === null || !socket.readableFlowing || socket.readableLength > 0) {
        return push.call(socket, chunk, encoding)
      }
      owner.onData(chunk, chunk.length)
      return true
    }
    socket.on('drain', () => owner.onDrain())
    socket.on('error', (error) => {
      failure = error
    })
    socket.on('end', () => owner.onEnd?.())
    socket.on('close', () => {
      this.#isClosed = true
      owner.onClose(failure)
    })
  }

  get queuedBytes(): number {
    return this.#isClosed ? 0 : this.#socket.writableLength
  }

  get peer(): string {
    return place(this.#socket.remoteAddress, this.#socket.remotePort)
  }

  get local(): string {
    return place(this.#socket.localAddress, this.#socket.localPort)
  }

  write(bytes: Buffer): boolean {
    if (this.#isClosed) return true
    this.#socket.write(bytes)
    return this.#socket.writableLength === 0
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  finish(): void {
    this.#socket.end()
  }

  end(): void {
    this.#socket.end()
    // The peer may never close its side.
    this.#socket.destroySoon()
  }

  destroy(): void {
    this.#socket.destroy()
  }
}

function place(address: string | undefined, port: number | undefined): string {
  if (address === undefined) return ''
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

// Replies for many clients arrive over few connections: they are read into one buffer that is reused.
const readBuffer = Buffer.allocUnsafeSlow(256 * 1024)

function readInto(owner: TransportOwner): OnReadOpts {
  return {
    buffer: readBuffer,
    callback: (length) => {
      owner.onData(readBuffer, length)
      return true
    },
  }
}

/** Connections over Node's public sockets. */
export const netTransports: TransportKind = {
  connect(target: ConnectTarget, owner: TransportOwner, onConnect: () => void): Transport {
    const { host, port, path, tls } = target
    const place = path === undefined ? { host, port } : { path }
    const socket =
      tls === undefined
        ? connectTcp({ ...place, noDelay: true, onread: readInto(owner) }, onConnect)
        : connectTls({ ...place, servername: /^[\d.]+$|:/.test(host) ? '' : host, ...tls }, onConnect)
    socket.setNoDelay(true)
    socket.setKeepAlive(true, keepAliveMs)
    return new NetTransport(socket, owner)
  },
}
