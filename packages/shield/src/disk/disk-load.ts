import type { Clock } from '@firebreak/core'
import type { CachedReply } from '../cache/cached-reply.ts'
import type { ReadCommand } from '../cache/read-command.ts'
import type { KeySpace } from '../gate/key-space.ts'
import type { KeyReading } from '../watcher/key-read.ts'
import type { TrackingWatcher } from '../watcher/tracking-watcher.ts'
import type { DiskReplies } from './disk-replies.ts'
import { encodeDigest, isDigestOf, isWorthDigesting } from './reply-digest.ts'

/** The key whose replies are on disk. */
export interface DiskLoadKey {
  readonly space: Pick<KeySpace, 'database'>
  readonly bytes: Uint8Array
  /** The watcher of the key's node, if it can read now. */
  reader(): TrackingWatcher | undefined
}

/** The outcome of a load; exactly one of these is called, later. */
export interface DiskLoadOutcome {
  /** What is on disk may be served. */
  served(reply: CachedReply): void
  /** Redis would answer with the bytes on disk: they are as good as read from it. */
  confirmed(reading: KeyReading, sentAt: number, watcher: TrackingWatcher): void
  /** The disk did not help: read Redis. */
  missed(): void
}

/** Reads a command's reply from disk; false if there is none. */
export function loadFromDisk(
  disk: DiskReplies,
  key: DiskLoadKey,
  command: ReadCommand,
  clock: Clock,
  outcome: DiskLoadOutcome,
): boolean {
  const find = () => disk.find(command.id, clock.now())
  const found = find()
  if (found === undefined) {
    return disk.readUntrusted(command.id, (bytes) => confirm(disk, key, command, bytes, outcome))
  }
  disk.read(found, (reply) => {
    // It may have been dropped, or have expired, while the disk was read.
    if (reply !== undefined && find() === found) outcome.served(reply)
    else outcome.missed()
  })
  return true
}

/** Asks Redis for the digest of its reply: if it matches that of the bytes from disk, they are the reply. */
function confirm(
  disk: DiskReplies,
  key: DiskLoadKey,
  command: ReadCommand,
  bytes: Uint8Array | undefined,
  outcome: DiskLoadOutcome,
): void {
  const watcher = bytes !== undefined && isWorthDigesting(bytes) ? key.reader() : undefined
  if (bytes === undefined || watcher === undefined) {
    outcome.missed()
    return
  }
  watcher.read(key.space.database, key.bytes, encodeDigest(command), (reading, sentAt) => {
    if (reading !== undefined && isDigestOf(command, bytes, reading.reply)) {
      outcome.confirmed({ reply: bytes, pttlMs: reading.pttlMs }, sentAt, watcher)
      return
    }
    disk.removeUntrusted(command.id)
    outcome.missed()
  })
}
