import type { ClientRequest } from '../requests/client-request.ts'
import { isWord } from '../requests/words.ts'

const ok = Buffer.from('+OK\r\n')
const syntaxError = Buffer.from('-ERR syntax error\r\n')
const wrongCount = Buffer.from("-ERR wrong number of arguments for 'client|reply' command\r\n")
const noSilence = Buffer.from(
  '-ERR Firebreak: CLIENT REPLY OFF and SKIP are not supported for a cluster: a node would also omit its redirections, and whatever it did not carry out would be lost\r\n',
)
const noTracking = Buffer.from(
  '-ERR Firebreak: CLIENT TRACKING is not supported for a cluster: only one of its nodes would report changed keys\r\n',
)

/**
 * The answer to a command that changes how all of a client's later requests are answered, when they go to many nodes
 * and no connection sees all of them; undefined for any other command.
 */
export function answerForWholeSession(request: ClientRequest): Buffer | undefined {
  const { name } = request.command
  const { length } = request.args
  if (name === 'CLIENT TRACKING') return length > 2 && isWord(request.argument(2), 'on') ? noTracking : undefined
  if (name !== 'CLIENT REPLY') return undefined
  if (length !== 3) return wrongCount
  const mode = request.argument(2)
  if (isWord(mode, 'on')) return ok
  return isWord(mode, 'off') || isWord(mode, 'skip') ? noSilence : syntaxError
}
