import type { CachedReply, KeyLimit } from '@firebreak/shield'
import type { IoredisCommand, PipelineStream } from './ioredis-client.ts'

/** What can become of a command that its key's limit held back. */
export interface AfterLimit {
  /** Its turn has come. */
  goOn(): void
  /** The last reply to such a command, where one is kept. */
  last(): CachedReply | undefined
  answer(reply: CachedReply): void
}

/** Does with a command what its key's limit says; false where it may go on at once. */
export function holdBack(
  verdict: ReturnType<KeyLimit['admit']>,
  command: IoredisCommand,
  stream: PipelineStream | undefined,
  after?: AfterLimit,
): boolean {
  if (verdict === undefined) return false
  const refuse = (error: unknown) => {
    // A pipeline counts the writes of its commands and sends them all at the last one.
    stream?.write('')
    const last = after?.last()
    if (last === undefined) command.reject(error)
    else after?.answer(last)
  }
  if (verdict instanceof Promise) verdict.then(after?.goOn, refuse)
  else refuse(verdict)
  return true
}
