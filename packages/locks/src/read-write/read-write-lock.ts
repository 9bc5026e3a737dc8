import { LockUpgradeError } from '../errors.ts'
import { LeasedLock, type LeasedLockParts } from '../lock/leased-lock.ts'
import type { LockProtocol } from '../lock/protocol.ts'

/** The write side of a read-write lock; refuses an owner that is still reading. */
class WriteLock extends LeasedLock {
  readonly #readProtocol: LockProtocol

  constructor(parts: LeasedLockParts, readProtocol: LockProtocol) {
    super(parts)
    this.#readProtocol = readProtocol
  }

  protected override onFirstEntry(owner: string): void {
    if (this.engine.isHolding(this.#readProtocol, owner)) throw new LockUpgradeError(this.name)
  }
}

/**
 * Many readers or one writer. Each reader has its own lease, so that the others do not keep a dead one's alive. Waiting
 * writers hold new readers back. A writer may read (and so step down); a reader cannot become a writer.
 */
export class ReadWriteLock {
  readonly name: string
  readonly read: LeasedLock
  readonly write: LeasedLock

  constructor(parts: Omit<LeasedLockParts, 'protocol'>, read: LockProtocol, write: LockProtocol) {
    this.name = read.name
    this.read = new LeasedLock({ ...parts, protocol: read })
    this.write = new WriteLock({ ...parts, protocol: write }, read)
  }
}
