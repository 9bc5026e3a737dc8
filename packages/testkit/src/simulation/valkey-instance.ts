import { instantiateValkey, type WasmInstance } from './valkey-module.ts'
import { firstSocketFd, type ValkeyHost, valkeyWasi } from './valkey-wasi.ts'

/** A client's end, as a server's socket sees it. */
export interface ValkeyPeer {
  /** Bytes for the client; they are its own. */
  onData(bytes: Uint8Array): void
  /** The server has closed the connection. */
  onClose(): void
}

/** What one instance held at one moment; it may be put into another one. */
export interface ValkeyPicture {
  readonly memory: Uint8Array
  readonly stackPointer: number
  /** The sockets that the memory knows of. */
  readonly openFds: readonly number[]
}

const pageBytes = 65_536
const readable = 1
const writable = 2
const again = -1

/** One connection to an instance. */
export class ValkeySocket {
  readonly fd: number
  /** While false the server keeps what it would write in the client's output buffer. */
  isWritable = true
  readonly #peer: ValkeyPeer | undefined
  readonly #chunks: Uint8Array[] = []
  #offset = 0
  #isEnded = false

  constructor(fd: number, peer: ValkeyPeer | undefined) {
    this.fd = fd
    this.#peer = peer
    this.#isEnded = peer === undefined
  }

  /** Whether a read would give something: bytes, or the end. */
  get isReadable(): boolean {
    return this.#chunks.length > 0 || this.#isEnded
  }

  /** The client has sent bytes, which nobody writes to any more. */
  push(bytes: Uint8Array): void {
    if (!this.#isEnded && bytes.length > 0) this.#chunks.push(bytes)
  }

  /** The client is gone. */
  end(): void {
    this.#isEnded = true
  }

  /** Copies waiting bytes to the target; returns how many, 0 at the end, below 0 if there are none yet. */
  read(target: Uint8Array): number {
    if (this.#chunks.length === 0) return this.#isEnded ? 0 : again
    let copied = 0
    while (copied < target.length && this.#chunks.length > 0) {
      const head = this.#chunks[0]!
      const part = head.subarray(this.#offset, this.#offset + target.length - copied)
      target.set(part, copied)
      copied += part.length
      this.#offset += part.length
      if (this.#offset === head.length) {
        this.#chunks.shift()
        this.#offset = 0
      }
    }
    return copied
  }

  write(bytes: Uint8Array): number {
    if (this.#peer === undefined || this.#isEnded || !this.isWritable) return again
    this.#peer.onData(bytes.slice())
    return bytes.length
  }

  closed(): void {
    this.#isEnded = true
    this.#peer?.onClose()
  }
}

/**
 * The embedded Valkey as an instance of its WebAssembly module: sockets in memory, clocks and chance from its host, and
 * no step that it is not told to make.
 *
 * It writes a reply in the pass of its event loop behind the one that ran the command, and reads at most 16 KB of a
 * socket a pass: `step` makes passes until nothing is left to read and all that was answered is written.
 */
export class ValkeyInstance {
  readonly #exports: WasmInstance['exports']
  readonly #sockets = new Map<number, ValkeySocket>()
  #pending: ValkeySocket[] = []
  #listener = -1
  /** Whether the last pass took something in, whose answer the next one writes. */
  #isBusy = false
  #bytes = new Uint8Array(0)
  #words = new Int32Array(0)

  constructor(host: Omit<ValkeyHost, 'memory' | 'read' | 'write' | 'close'>) {
    const instance = instantiateValkey({
      host: {
        socket: () => this.#freeFd(),
        listen: (fd) => {
          this.#listener = fd!
          return 0
        },
        accept: () => this.#accept(),
        poll: (interest, count, fired, most) => this.#poll(interest!, count!, fired!, most!),
      },
      wasi: valkeyWasi({
        ...host,
        memory: () => this.#exports.memory.buffer,
        read: (fd, target) => {
          this.#isBusy = true
          return this.#sockets.get(fd)?.read(target) ?? again
        },
        write: (fd, bytes) => this.#sockets.get(fd)?.write(bytes) ?? again,
        close: (fd) => {
          const socket = this.#sockets.get(fd)
          this.#sockets.delete(fd)
          socket?.closed()
        },
      }),
    })
    this.#exports = instance.exports
    this.#exports._initialize()
    this.#exports.rk_boot(6379)
  }

  /** How much memory the instance has. */
  get memoryBytes(): number {
    return this.#exports.memory.buffer.byteLength
  }

  /** A new connection; the server accepts it in its next step. */
  connect(peer: ValkeyPeer): ValkeySocket {
    const socket = new ValkeySocket(this.#freeFd(), peer)
    this.#sockets.set(socket.fd, socket)
    this.#pending.push(socket)
    return socket
  }

  /** Serves all that has arrived, and what is due by the clock. Throws a `ValkeyExit` where the server ends itself. */
  step(): void {
    do {
      this.#isBusy = false
      this.#exports.rk_step()
    } while (this.#isBusy)
  }

  /** A copy of all that the server holds, to be put back later, here or in another instance. */
  picture(): ValkeyPicture {
    const pending = new Set(this.#pending.map(({ fd }) => fd))
    return {
      memory: this.#memory().slice(),
      stackPointer: this.#exports.__stack_pointer.value,
      openFds: [...this.#sockets.keys()].filter((fd) => !pending.has(fd)),
    }
  }

  /** Puts an older memory back. All connections end; `keep` names the one that the picture's memory shares. */
  putBack(picture: ValkeyPicture, keep?: ValkeySocket): void {
    const ended = [...this.#sockets.values()].filter((socket) => socket !== keep)
    this.#sockets.clear()
    this.#pending = []
    for (const socket of ended) socket.closed()
    const missing = picture.memory.length - this.#memory().length
    if (missing > 0) this.#exports.memory.grow(Math.ceil(missing / pageBytes))
    const memory = this.#memory()
    memory.set(picture.memory)
    memory.fill(0, picture.memory.length)
    this.#exports.__stack_pointer.value = picture.stackPointer
    // Clients of then read the end of their connection in the next step, and the server forgets them.
    for (const fd of picture.openFds) this.#sockets.set(fd, fd === keep?.fd ? keep : new ValkeySocket(fd, undefined))
  }

  // Valkey keeps clients in an array by descriptor: the lowest free one, as a kernel gives.
  #freeFd(): number {
    let fd = firstSocketFd
    while (fd === this.#listener || this.#sockets.has(fd)) fd++
    return fd
  }

  #accept(): number {
    const socket = this.#pending.shift()
    this.#isBusy = true
    return socket?.fd ?? again
  }

  #poll(interest: number, count: number, fired: number, most: number): number {
    this.#memory()
    const words = this.#words
    let from = interest >> 2
    let to = fired >> 2
    let found = 0
    for (let index = 0; index < count && found < most; index++, from += 2) {
      const fd = words[from]!
      const mask = words[from + 1]!
      let ready = 0
      if (fd === this.#listener) {
        if (this.#pending.length > 0) ready = readable
      } else {
        const socket = this.#sockets.get(fd)
        if (socket?.isReadable) ready = readable
        if (socket?.isWritable) ready |= writable
      }
      ready &= mask
      if (ready === 0) continue
      words[to++] = fd
      words[to++] = ready
      found++
    }
    return found
  }

  #memory(): Uint8Array {
    const { buffer } = this.#exports.memory
    // Growing gives the memory a new buffer.
    if (this.#bytes.buffer !== buffer) {
      this.#bytes = new Uint8Array(buffer)
      this.#words = new Int32Array(buffer)
    }
    return this.#bytes
  }
}
