import type { ValkeyImports } from './valkey-module.ts'

/** The world as the module sees it through WASI. */
export interface ValkeyHost {
  /** The instance's memory; its buffer changes when it grows. */
  memory(): ArrayBuffer
  /** Milliseconds since 1970 by the server's wall clock. */
  wallNowMs(): number
  /** Milliseconds by a clock that never steps. */
  steadyNowMs(): number
  fillRandom(bytes: Uint8Array): void
  /** Reads from a socket; returns the number of bytes, 0 at its end, below 0 if there are none yet. */
  read(fd: number, target: Uint8Array): number
  /** Writes to a socket; below 0 where it takes none at present. */
  write(fd: number, bytes: Uint8Array): number
  close(fd: number): void
  /** A line of the server's own log. */
  onLog(text: string): void
}

/** The server ended itself (SHUTDOWN, out of memory, a failed assertion). */
export class ValkeyExit extends Error {
  constructor(code: number) {
    super(`valkey ended itself with code ${code}`)
    this.name = 'ValkeyExit'
  }
}

const success = 0
const tryAgain = 6
const badFd = 8
const noEntry = 44
const readOnly = 69
const rootFd = 3
const randomFd = 5
/** From here on descriptors are sockets. */
export const firstSocketFd = 16
const directory = 3
const characterDevice = 2
const createFlag = 1

/**
 * WASI for a server that has no disk: the clock and chance are the host's (`/dev/urandom` is where Valkey takes its hash
 * seed and all later chance from), there are no files, and none can be written.
 *
 * Sockets are read and written through WASI too. The module has calls of its own for them, but only for descriptors from
 * 4096 on. Low descriptors serve about a sixth more commands (75,000 against 64,000 a CPU second from descriptor 16 and
 * from 4000, GET one by one, medians of nine runs in turn).
 */
export function valkeyWasi(host: ValkeyHost): ValkeyImports['wasi'] {
  let cached = new DataView(new ArrayBuffer(0))
  const view = (): DataView => {
    const memory = host.memory()
    if (cached.buffer !== memory) cached = new DataView(memory)
    return cached
  }
  // A pass of the event loop asks some ten times, during which the time does not change.
  let lastMs = Number.NaN
  let lastNanoseconds = 0n
  const text = (at: number, length: number): string => Buffer.from(host.memory(), at, length).toString('latin1')
  /** Calls back with each buffer of a list of them, and gives their bytes in sum. */
  const forEachBuffer = (list: number, count: number, each: (bytes: Uint8Array) => void): number => {
    const memory = view()
    let total = 0
    for (let index = 0; index < count; index++) {
      const at = memory.getUint32(list + index * 8, true)
      const length = memory.getUint32(list + index * 8 + 4, true)
      each(new Uint8Array(host.memory(), at, length))
      total += length
    }
    return total
  }
  return {
    clock_time_get(id: number, _precision: bigint, at: number) {
      const nowMs = id === 0 ? host.wallNowMs() : host.steadyNowMs()
      if (nowMs !== lastMs) {
        lastMs = nowMs
        // Microseconds are exact in a number, nanoseconds are not.
        lastNanoseconds = BigInt(Math.round(nowMs * 1000)) * 1000n
      }
      view().setBigUint64(at, lastNanoseconds, true)
      return success
    },
    environ_sizes_get(count: number, size: number) {
      view().setUint32(count, 0, true)
      view().setUint32(size, 0, true)
      return success
    },
    environ_get: () => success,
    fd_prestat_get(fd: number, at: number) {
      if (fd !== rootFd) return badFd
      view().setUint32(at, 0, true)
      view().setUint32(at + 4, 1, true)
      return success
    },
    fd_prestat_dir_name(_fd: number, at: number) {
      view().setUint8(at, 0x2f)
      return success
    },
    fd_fdstat_get(fd: number, at: number) {
      const bytes = new Uint8Array(host.memory(), at, 24)
      bytes.fill(0)
      bytes[0] = fd === rootFd ? directory : characterDevice
      bytes.fill(255, 8)
      return success
    },
    path_open(_dir: number, _look: number, at: number, length: number, flags: number, ...rest: unknown[]) {
      if (text(at, length) === 'dev/urandom') {
        view().setUint32(rest.at(-1) as number, randomFd, true)
        return success
      }
      return (flags & createFlag) !== 0 ? readOnly : noEntry
    },
    path_filestat_get: () => noEntry,
    path_create_directory: () => readOnly,
    path_unlink_file: () => noEntry,
    fd_read(fd: number, list: number, count: number, read: number) {
      let total = 0
      if (fd >= firstSocketFd) {
        const memory = view()
        const at = memory.getUint32(list, true)
        total = host.read(fd, new Uint8Array(memory.buffer, at, memory.getUint32(list + 4, true)))
        if (total < 0) return tryAgain
      } else if (fd === randomFd) {
        total = forEachBuffer(list, count, (bytes) => host.fillRandom(bytes))
      } else {
        return badFd
      }
      view().setUint32(read, total, true)
      return success
    },
    fd_write(fd: number, list: number, count: number, written: number) {
      if (fd >= firstSocketFd) {
        let taken = 0
        let isFull = false
        forEachBuffer(list, count, (bytes) => {
          const more = isFull ? -1 : host.write(fd, bytes)
          if (more < 0) isFull = true
          else taken += more
        })
        if (taken === 0 && isFull) return tryAgain
        view().setUint32(written, taken, true)
        return success
      }
      let line = ''
      const total = forEachBuffer(list, count, (bytes) => {
        line += Buffer.from(bytes).toString('latin1')
      })
      if (line.trim() !== '') host.onLog(line.trim())
      view().setUint32(written, total, true)
      return success
    },
    fd_close(fd: number) {
      if (fd >= firstSocketFd) host.close(fd)
      return success
    },
    fd_fdstat_set_flags: () => success,
    sock_shutdown: () => success,
    sched_yield: () => success,
    poll_oneoff: () => success,
    proc_exit(code: number): never {
      throw new ValkeyExit(code)
    },
  } as ValkeyImports['wasi']
}
