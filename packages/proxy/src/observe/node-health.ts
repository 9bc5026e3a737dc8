/** Is told what becomes of connections to a Redis, whoever uses them. */
export interface ConnectionWatch {
  /** One was lost, or could not be made; where `isRefusal`, the server did not take the user that was shown. */
  onLost(isRefusal: boolean): void
  /** A reply was an error: the bytes from `start` to `end`. */
  onErrorReply(bytes: Buffer, start: number, end: number): void
}

/** Codes of errors that are told apart; scripts may make up their own. */
const maxCodes = 32
const maxCodeLength = 20
const minus = 0x2d
const letterA = 0x41
const letterZ = 0x5a

/** How one Redis fares: whether it answers, and what its connections have met with. */
export class NodeHealth implements ConnectionWatch {
  /** What it said when it was last asked; undefined before. */
  isUp: boolean | undefined
  /** Something happened since it was last asked that makes its answer worth another question. */
  isInDoubt = true
  lostCount = 0
  readonly errorCounts = new Map<string, number>()

  onLost(isRefusal: boolean): void {
    // The name that a client gives itself is its own business.
    if (!isRefusal) this.lostCount++
    this.isInDoubt = true
  }

  onErrorReply(bytes: Buffer, start: number, end: number): void {
    const code = codeOf(bytes, start, end)
    const known = this.errorCounts.has(code) || this.errorCounts.size < maxCodes ? code : 'other'
    this.errorCounts.set(known, (this.errorCounts.get(known) ?? 0) + 1)
  }
}

/** The word in capitals that an error begins with, as `WRONGTYPE`; of one that has none, or came in pieces, `other`. */
function codeOf(bytes: Buffer, start: number, end: number): string {
  if (bytes[start] !== minus) return 'other'
  let at = start + 1
  const last = Math.min(end, at + maxCodeLength)
  while (at < last && bytes[at]! >= letterA && bytes[at]! <= letterZ) at++
  return at === start + 1 ? 'other' : bytes.toString('latin1', start + 1, at)
}
