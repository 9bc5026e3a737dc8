import { encodeCommand, RequestError } from '@firebreak/core/resp'
import { pingCommand } from '../commands/proxy-command.ts'
import { lostReply } from '../replies/reply-text.ts'
import { nobody } from '../upstream/identity.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'
import type { ClientStanding, ProxyClient } from './proxy-client.ts'

/** What a client may send that has not said who it is, as Redis bounds it. */
const unknownArguments = 10
const unknownBytes = 16 * 1024
/** More than a client library says before it shows a password; who goes on asking without one only costs. */
const unknownRequests = 100
/** So many arguments are read, at 8 bytes each, before the server is asked whether it lets such a client in. */
const unaskedArguments = 1024

const everyArgument = 2 ** 31 - 1
const ping = encodeCommand(['PING'])
const tooManyReply = Buffer.from('-NOAUTH Authentication required: too many requests without it\r\n')

/**
 * Whether a client may use the proxy's memory. Of one that has yet to show a password only small requests are read, and
 * not many.
 *
 * Where the proxy has no users, passwords are the server's matter, and only the server knows whether it asks for one. It
 * is asked with a PING of ours before the first large request of a client that has said nothing, which waits meanwhile,
 * in the kernel.
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
   * Over the connection for scripts: a Redis that asks for a password ends the one on which a crowd without it has more than
   * a kilobyte of refusals unread.
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
        // Whoever can end the connection would be let in.
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
