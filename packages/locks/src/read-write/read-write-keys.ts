import { besideName } from '../lock/lock-keys.ts'

/** The keys of a read-write lock; unrelated to those of a plain lock of the same name. */
export interface ReadWriteKeys {
  /** The hash of the writer, like a plain lock's. */
  readonly writer: string
  /** The readers by the end of their lease on Redis' clock. */
  readonly readers: string
  /** Exists while a writer waits for readers. */
  readonly waiting: string
  readonly token: string
  readonly epoch: string
  readonly channel: string
}

/** The keys of a read-write lock by its name. */
export function readWriteKeys(name: string): ReadWriteKeys {
  return {
    writer: besideName('firebreak_rw_writer', name),
    readers: besideName('firebreak_rw_readers', name),
    waiting: besideName('firebreak_rw_waiting', name),
    token: besideName('firebreak_rw_token', name),
    epoch: besideName('firebreak_rw_epoch', name),
    channel: besideName('firebreak_rw_channel', name),
  }
}
