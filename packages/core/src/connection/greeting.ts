import { type CommandArgument, encodeCommand } from '../resp/encode-command.ts'
import { ReplyDecoder } from '../resp/reply-decoder.ts'
import { joinBytes } from '../resp/text.ts'
import { ErrorReply } from '../resp/value.ts'
import { isErrorReply, type RespConnection } from './resp-connection.ts'

/** Who a connection authenticates as, and what it sets up before its first request. */
export interface Greeting {
  readonly username?: string | Uint8Array | undefined
  readonly password?: string | Uint8Array | undefined
  /** @default 0 */
  readonly database?: number | undefined
  /** The requested protocol; a server that does not know HELLO gets RESP2. @default 2 */
  readonly version?: 2 | 3
  /** The connection's name in CLIENT LIST, if the server lets us set it. */
  readonly name?: string
}

/** The outcome of a greeting. */
export type GreetingResult =
  | { readonly kind: 'ready'; readonly version: 2 | 3 /** Why it is not 3. */; readonly helloRefusal?: string }
  | { readonly kind: 'refused'; readonly command: string; readonly reply: ErrorReply }
  | { readonly kind: 'lost' }

interface Step {
  readonly args: readonly CommandArgument[]
  readonly isOptional?: boolean
}

/** HELLO errors that are about us, not about the server's age. */
const aboutUs = /^(NOAUTH|WRONGPASS|NOPERM|LOADING|MASTERDOWN|BUSY)\b/

/**
 * Authenticates, chooses the protocol and selects the database in one round trip (two if the server does not know
 * HELLO), and calls back once the server has accepted all of it. Nothing else may be sent before that: it could run as
 * another user or on another database.
 */
export function greet(connection: RespConnection, greeting: Greeting, done: (result: GreetingResult) => void): void {
  tryVersion(connection, greeting, greeting.version ?? 2, undefined, done)
}

function tryVersion(
  connection: RespConnection,
  greeting: Greeting,
  version: 2 | 3,
  helloRefusal: string | undefined,
  done: (result: GreetingResult) => void,
): void {
  const ready: GreetingResult = { kind: 'ready', version, ...(helloRefusal !== undefined && { helloRefusal }) }
  const steps = stepsOf(greeting, version)
  if (steps.length === 0) {
    done(ready)
    return
  }
  let refusal: { readonly index: number; readonly reply: ErrorReply } | undefined
  connection.send(joinBytes(steps.map(({ args }) => encodeCommand(args))), steps.length, (reply, index) => {
    const isLast = index === steps.length - 1
    if (reply !== undefined && isErrorReply(reply) && steps[index]!.isOptional !== true) {
      refusal ??= { index, reply: errorOf(reply) }
    }
    if (!isLast) return
    if (reply === undefined) done({ kind: 'lost' })
    else if (refusal === undefined) done(ready)
    else if (version === 3 && refusal.index === 0 && !aboutUs.test(refusal.reply.text)) {
      tryVersion(connection, greeting, 2, refusal.reply.text, done)
    } else done({ kind: 'refused', command: String(steps[refusal.index]!.args[0]), reply: refusal.reply })
  })
}

function stepsOf({ username, password, database = 0, name }: Greeting, version: 2 | 3): Step[] {
  const steps: Step[] = []
  if (version === 3) {
    const auth = password === undefined ? [] : ['AUTH', username ?? 'default', password]
    steps.push({ args: ['HELLO', '3', ...auth] })
  } else if (password !== undefined) {
    steps.push({ args: username === undefined ? ['AUTH', password] : ['AUTH', username, password] })
  }
  if (database !== 0) steps.push({ args: ['SELECT', database] })
  // Old servers and ACLs may refuse it; the name is only a courtesy to anyone who reads CLIENT LIST.
  if (name !== undefined) steps.push({ args: ['CLIENT', 'SETNAME', name], isOptional: true })
  return steps
}

function errorOf(reply: Uint8Array): ErrorReply {
  const decoder = new ReplyDecoder()
  decoder.feed(reply)
  const value = decoder.next()
  return value instanceof ErrorReply ? value : new ErrorReply('')
}
