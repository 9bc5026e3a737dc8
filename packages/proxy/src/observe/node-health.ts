/** Notified about connections to a Redis, whoever uses them. */
export interface ConnectionWatch {
  /** A connection was lost or could not be made; with `isRefusal`, the server rejected the user. */
  onLost(isRefusal: boolean): void
  /** A reply was an error: the bytes from `start` to `end`. */
  onErrorReply(bytes: Buffer, start: number, end: number): void
}

/** Number of distinct error codes counted; scripts may invent their own. */
const maxCodes = 32
const maxCodeLength = 20
const minus = 0x2d
const letterA = 0x41
const letterZ = 0x5a

/** The health of one Redis: whether it answers, and what its connections ran into. */
export class NodeHealth implements ConnectionWatch {
  /** Its last answer; undefined before the first. */
  isUp: boolean | undefined
  /** Something has happened since the last check that makes it worth checking again. */
  isInDoubt = true
  lostCount = 0
  readonly errorCounts = new Map<string, number>()

  onLost(isRefusal: boolean): void {
    // A refused user is that client's problem.
    if (!isRefusal) this.lostCount++
    this.isInDoubt = true
  }

  onErrorReply(bytes: Buffer, start: number, end: number): void {
    const code = codeOf(bytes, start, end)
    const known = this.errorCounts.has(code) || this.errorCounts.size < maxCodes ? code : 'other'
    this.errorCounts.set(known, (this.errorCounts.get(known) ?? 0) + 1)
  }
}

/**
 * The code that an error begins with, in capitals, such as `WRONGTYPE`; `other` if it has none or arrived in pieces.
 */
function codeOf(bytes: Buffer, start: number, end: number): string {
  if (bytes[start] !== minus) return 'other'
  let at = start + 1
  const last = Math.min(end, at + maxCodeLength)
  while (at < last && bytes[at]! >= letterA && bytes[at]! <= letterZ) at++
  return at === start + 1 ? 'other' : bytes.toString('latin1', start + 1, at)
}
