import { mkdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** Folders held by this process. */
const held = new Set<string>()

/**
 * The folder of a disk tier. Only one process at a time may hold it, because two would read each other's records: its
 * id is in the file `owner`, which counts while that process lives.
 */
export class DiskFolder {
  readonly path: string
  readonly file: string
  readonly #owner: string

  private constructor(path: string) {
    this.path = path
    this.file = join(path, 'replies.mdb')
    this.#owner = join(path, 'owner')
  }

  /** Creates the folder and takes it; throws if that fails or another process holds it. */
  static take(folder: string): DiskFolder {
    const path = resolve(folder)
    const taken = new DiskFolder(path)
    mkdirSync(path, { recursive: true, mode: 0o700 })
    if (held.has(path)) throw new Error('another shield in this process is using it')
    const owner = taken.#ownerId()
    if (owner !== undefined && owner !== process.pid && isAlive(owner)) throw new Error(`process ${owner} uses it`)
    writeFileSync(taken.#owner, String(process.pid), { mode: 0o600 })
    held.add(path)
    return taken
  }

  /** Bytes available to the records: free ones, and those that they already use. */
  get roomBytes(): number {
    const { bavail, bsize } = statfsSync(this.path)
    return bavail * bsize + (statSync(this.file, { throwIfNoEntry: false })?.size ?? 0)
  }

  /** Removes the records. */
  wipe(): void {
    rmSync(this.file, { force: true })
    this.dropLocks()
  }

  /** Removes LMDB's reader table, which only dead processes can have left. */
  dropLocks(): void {
    rmSync(`${this.file}-lock`, { force: true })
  }

  release(): void {
    held.delete(this.path)
    rmSync(this.#owner, { force: true })
  }

  #ownerId(): number | undefined {
    try {
      return Number(readFileSync(this.#owner, 'utf8')) || undefined
    } catch {
      return undefined
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
