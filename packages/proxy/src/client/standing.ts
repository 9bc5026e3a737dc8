import { encodeCommand, RequestError } from '@firebreak/core/resp'
import { pingCommand } from '../commands/proxy-command.ts'
import { lostReply } from '../replies/reply-text.ts'
import { nobody } from '../upstream/identity.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'
import type { ClientStanding, ProxyClient } from './proxy-client.ts'

/** The bounds on requests of an unauthenticated client; the same as in Redis. */
const unknownArguments = 10
const unknownBytes = 16 * 1024
/** More requests than any client library sends before its password; a client that goes on without one only costs. */
const unknownRequests = 100
/** This many arguments are read, at 8 bytes each, before the server is asked whether it lets such a client in. */
const unaskedArguments = 1024

const everyArgument = 2 ** 31 - 1
const ping = encodeCommand(['PING'])
const tooManyReply = Buffer.from('-NOAUTH Authentication required: too many requests without it\r\n')

/**
 * Whether a client may use the proxy's memory. Before a client has shown a required password, only a few small requests
 * are read.
 *
 * A proxy without users leaves passwords to the server, and only the server knows whether it requires one. The proxy
 * asks it with a PING before the first large request of an unauthenticated client; the request meanwhile waits in the
 * kernel.
 */
export class Standing implements ClientStanding {
  readonly #client: ProxyClient
  #judgement: 'let in' | 'kept out' | undefined
  #isAsking = false
  #unknownRequests = 0

  constructor(client: ProxyClient) {
    this.#client = client
    this.renew()
  }

  get #isKnown(): boolean {
    const { host, session } = this.#client
    if (host.users !== undefined) return session.isKnown
    return session.identity.id !== nobody.id || this.#judgement === 'let in'
  }

  renew(): void {
    const { host, parser, backlog } = this.#client
    backlog.isStranger = !this.#isKnown
    const most = host.users === undefined ? unaskedArguments : unknownArguments
    parser.headOnlyAbove = this.#isKnown ? everyArgument : most
  }

  mustWait(): boolean {
    const { parser, host } = this.#client
    const isLong = parser.expectedLength > unknownArguments
    if ((!isLong && parser.missingBytes <= unknownBytes) || this.#isKnown) return false
    if (host.users !== undefined || this.#judgement === 'kept out') {
      throw new RequestError(`unauthenticated ${isLong ? 'multibulk' : 'bulk'} length`)
    }
    const client = this.#client
    client.hold()
    client.transport.pause()
    this.#ask(
      () => client.letGo(),
      (reply) => this.#end(reply),
    )
    return true
  }

  seeCrowd(): void {
    const isAsked = this.#isAsking || this.#judgement !== undefined
    if (this.#client.host.users !== undefined || isAsked || this.#isKnown) return
    this.#ask(
      () => {
        if (this.#judgement === 'kept out') this.#end(tooManyReply)
      },
      () => {},
    )
  }

  isPatienceOver(): boolean {
    if (this.#client.session.isKnown || ++this.#unknownRequests <= unknownRequests) return false
    this.#end(tooManyReply)
    return true
  }

  #end(reply: Uint8Array): void {
    this.#client.answerNow(reply)
    this.#client.endAfterReplies()
  }

  /**
   * Over the connection for scripts: a Redis that requires a password closes a connection with more than a kilobyte of
   * unread refusals, as many clients without a password may cause on the shared one.
   */
  #ask(andThen: () => void, onLost: (reply: Uint8Array) => void): void {
    const { node, freshState, turn } = this.#client.host
    this.#isAsking = true
    const judge = (isKeptOut: boolean) => {
      this.#isAsking = false
      this.#judgement = isKeptOut ? 'kept out' : 'let in'
      this.renew()
      andThen()
    }
    const target: ReplyTarget = {
      onReply: (_tag, bytes, start, end, isLast) => {
        if (isLast) judge(isNoAuth(bytes.subarray(start, end)))
      },
      onLost: (_tag, error) => {
        if (isNoAuth(error.refusal)) return judge(true)
        // Otherwise anyone able to break the connection would be let in.
        this.#isAsking = false
        onLost(lostReply(error, false))
      },
    }
    node.lane(freshState, 'scripts').send(ping, 0, ping.length, target, 0, pingCommand.id, turn.nowMs)
  }
}

function isNoAuth(reply: Uint8Array | undefined): boolean {
  return reply !== undefined && Buffer.from(reply.subarray(0, 7)).toString('latin1') === '-NOAUTH'
}
