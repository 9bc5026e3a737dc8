import { encodeCommand } from '@firebreak/core/resp'
import type { ProxyClient } from '../client/proxy-client.ts'
import type { UpstreamLostError } from '../errors.ts'
import { noName } from '../lanes/connection-name.ts'
import type { ReplyMark } from '../lanes/pinned-lane.ts'
import { HelloReply, helloReply } from '../replies/hello-reply.ts'
import { infoMark } from '../replies/info-reply.ts'
import { integerIn, isWord } from '../requests/words.ts'
import { idMark, killMark, listMark, rowMark } from '../roster/roster-marks.ts'
import { type Identity, identityOf } from '../upstream/identity.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'
import { type HelloOption, helloOf, isName } from './hello-request.ts'
import type { ClientLogIn } from './log-in.ts'

const ok = Buffer.from('+OK\r\n')
const resetDone = Buffer.from('+RESET\r\n')
const noAuth = Buffer.from('-NOAUTH Authentication required.\r\n')
const helloNoAuth = Buffer.from(
  '-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time\r\n',
)
const maxDatabase = 2 ** 31 - 1

/**
 * Carries out a command about the client itself: its user, protocol and database. False if it has to wait.
 *
 * Nothing is decided here that Redis can decide: a database or protocol is adopted once a connection with it exists,
 * credentials once the server has accepted them, and a refusal is passed on in the server's own words.
 */
export function carryOut(client: ProxyClient): boolean {
  const { session, args } = client
  switch (client.request.command.name) {
    case 'QUIT':
      client.answerNow(ok)
      client.endAfterReplies()
      return true
    case 'RESET':
      if (args.length !== 1) return toServer(client)
      if (client.slots.owed > 0) return client.waitForReplies()
      client.own.unpin()
      session.reset()
      client.stateChanged()
      client.answerNow(resetDone)
      return true
    case 'CLIENT SETNAME':
      if (args.length !== 3) return toServer(client)
      return setName(client)
    case 'CLIENT GETNAME':
      if (args.length !== 2) return toServer(client)
      // A shared connection has no name; whether the client may ask is up to the server.
      if (session.name === '' || !session.isKnown) return toServer(client)
      return client.own.borrow()
    case 'SELECT':
      return select(client)
    case 'AUTH':
      return authenticate(client)
    case 'HELLO':
      return hello(client)
    default:
      return toServer(client)
  }
}

/** What a reply on the client's own connection will say about that connection or the client. */
export function markOf(client: ProxyClient): ReplyMark | undefined {
  const { session, args, host } = client
  const { command } = client.request
  switch (command.mark) {
    case undefined:
      return infoMark(client)
    case 'subscribe':
    case 'unsubscribe':
      return { command, channels: args.length - 1 }
    case 'select': {
      const database = args.length === 2 ? integerIn(client.request.argument(1)) : undefined
      const onDone = () => {
        if (database === undefined) return
        session.database = database
        stateMoved(client)
      }
      return { command, onDone }
    }
    case 'auth': {
      const identity = credentialsOf(client)
      return {
        command,
        onDone: () => {
          if (identity !== undefined) session.identity = identity
          stateMoved(client)
        },
      }
    }
    case 'hello': {
      const { version, identity, name, isWhole } = helloOf(client.request.list().slice(1))
      return {
        command,
        staysIfRefused: !isWhole && client.own.mayStay,
        complete: (reply, answer) => answer(helloReply(client, reply)),
        onDone: () => {
          if (identity !== undefined) session.identity = identity
          if (version !== undefined) session.version = version
          if (name !== undefined) session.name = name
          stateMoved(client)
        },
      }
    }
    case 'tracking': {
      const isOn = args.length > 2 && isWord(client.request.argument(2), 'on')
      const { pinned } = client.own
      return {
        command,
        onDone: () => {
          pinned!.isTainted = true
          pinned!.setTracking(isOn)
        },
      }
    }
    case 'list':
      return listMark(client)
    case 'row':
      return rowMark(client)
    case 'id':
      return idMark(client)
    case 'kill':
      return killMark(client)
    case 'name': {
      const name = args.length === 3 ? Buffer.from(client.request.argument(2)).toString('latin1') : ''
      return { command, onDone: () => void (session.name = name) }
    }
    case 'pause': {
      const forMs = command.name === 'CLIENT PAUSE' && args.length > 2 ? integerIn(client.request.argument(2)) : 0
      return { command, onDone: () => host.isolate(forMs ?? 0) }
    }
    default:
      return { command }
  }
}

/** The client's dedicated connection is no longer in its initial state. */
function stateMoved(client: ProxyClient): void {
  if (client.own.pinned !== undefined) client.own.pinned.isTainted = true
  client.stateChanged()
}

/** Over a shared connection: the server will refuse it, or it changes nothing there. */
function toServer(client: ProxyClient): boolean {
  if (!client.session.isKnown) client.answerNow(noAuth)
  else if (client.own.pinned !== undefined) client.own.send(client.own.pinned)
  else client.sendShared(client.lanes.forCommands())
  return true
}

/** To find out whether the client may have a name, we try an empty one, which leaves nothing on a shared connection. */
function setName(client: ProxyClient): boolean {
  const { session } = client
  const name = client.request.argument(2)
  if (!session.isKnown || !isName(name)) return toServer(client)
  if (client.slots.owed > 0) return client.waitForReplies()
  const text = Buffer.from(name).toString('latin1')
  client.request.rewrite(noName)
  client.sendShared(client.lanes.forCommands(), new Committing(client, () => void (session.name = text)), 0)
  return true
}

function select(client: ProxyClient): boolean {
  const { session, args, host } = client
  if (!session.isKnown) {
    client.answerNow(noAuth)
    return true
  }
  const database = args.length === 2 ? integerIn(client.request.argument(1)) : undefined
  if (database === undefined || database < 0 || database > maxDatabase) return toServer(client)
  if (client.slots.owed > 0) return client.waitForReplies()
  const lane = host.node.lane({ ...session.snapshot(), database })
  client.sendShared(lane, new Committing(client, () => void (session.database = database)), 0)
  return true
}

function authenticate(client: ProxyClient): boolean {
  const { args, host, session } = client
  if (host.users !== undefined) {
    if (args.length !== 2 && args.length !== 3) {
      client.answerNow(Buffer.from("-ERR wrong number of arguments for 'auth' command\r\n"))
      return true
    }
    if (client.slots.owed > 0) return client.waitForReplies()
    const username = args.length === 3 ? Buffer.from(client.request.argument(1)).toString() : 'default'
    const password = client.request.argument(args.length - 1)
    client.answerNow(logIn(client, host.users, username, password) ?? ok)
    return true
  }
  if (args.length !== 2 && args.length !== 3) return toServer(client)
  if (client.slots.owed > 0) return client.waitForReplies()
  session.isKnown = true
  // Shown to the server each time.
  client.own.sendFresh()
  return true
}

/** Logs the client in as a user of the proxy; returns the reply that refuses it, if any. */
function logIn(client: ProxyClient, users: ClientLogIn, username: string, password: Uint8Array): Buffer | undefined {
  const identity = users.logIn(username, password, client.transport.peer)
  if ('reply' in identity) return identity.reply
  const { session } = client
  session.identity = identity
  session.username = username
  session.isKnown = true
  client.stateChanged()
  return undefined
}

function credentialsOf(client: ProxyClient): Identity | undefined {
  const { args } = client
  if (args.length === 2) return identityOf(undefined, Buffer.from(client.request.argument(1)))
  if (args.length === 3)
    return identityOf(Buffer.from(client.request.argument(1)), Buffer.from(client.request.argument(2)))
  return undefined
}

function hello(client: ProxyClient): boolean {
  const { session, args, host } = client
  if (args.length === 1) {
    if (!session.isKnown) client.answerNow(helloNoAuth)
    else if (client.own.pinned !== undefined) return toServer(client)
    else client.sendShared(client.lanes.forCommands(), new HelloReply(client), 0)
    return true
  }
  if (client.slots.owed > 0) return client.waitForReplies()
  const request = helloOf(client.request.list().slice(1))
  const { version, options } = request
  const plain = encodeCommand(['HELLO', client.request.argument(1)])
  if (version === undefined) {
    client.request.rewrite(plain)
    client.own.sendFresh()
    return true
  }
  if (host.users === undefined) {
    // Only the server knows which part it carries out before refusing the rest.
    if (!request.isWhole) return client.own.borrow()
    if (request.identity !== undefined) {
      client.own.sendFresh()
      return true
    }
  } else {
    const refusal = carryOutOptions(client, host.users, options)
    if (refusal !== undefined) {
      client.answerNow(refusal)
      return true
    }
  }
  const { name } = request
  const lane = host.node.lane({ ...session.snapshot(), version })
  const commit = () => {
    session.version = version
    if (name !== undefined) session.name = name
  }
  const reply = new HelloReply(client)
  const again = name === undefined || host.users !== undefined ? undefined : sendAgainAlone(client, reply.slot)
  client.request.rewrite(plain)
  client.sendShared(lane, new Committing(client, commit, reply, again), 0)
  return true
}

/**
 * Some servers accept a name before authentication and refuse the rest. Only a dedicated connection shows what this
 * server does, and the client then keeps it.
 */
function sendAgainAlone(client: ProxyClient, slot: number): () => void {
  const bytes = client.request.copy()
  const mark = { ...markOf(client)!, staysIfRefused: client.own.mayStay }
  return () => {
    client.own.pinTo(client.host.node).send(bytes, 0, bytes.length, slot, mark)
    client.waitForReplies()
  }
}

/**
 * For a proxy with its own users: carries out one option after another, as Redis does; returns the error if it is
 * refused.
 */
function carryOutOptions(client: ProxyClient, users: ClientLogIn, options: readonly HelloOption[]): Buffer | undefined {
  for (const option of options) {
    if (option.act === 'refuse') return option.reply
    if (option.act === 'name') client.session.name = option.name
    else {
      const refusal = logIn(client, users, option.username.toString(), option.password)
      if (refusal !== undefined) return refusal
    }
  }
  return client.session.isKnown ? undefined : helloNoAuth
}

/** Waits for the reply that says whether a client's state has changed; no request is taken before that. */
class Committing implements ReplyTarget {
  readonly #client: ProxyClient
  readonly #reply: ReplyTarget
  readonly #tag: number
  readonly #commit: () => void

  /** Carries it out in another way if the server wants a password first. */
  readonly #again: (() => void) | undefined

  constructor(client: ProxyClient, commit: () => void, reply?: ReplyTarget, again?: () => void) {
    this.#again = again
    this.#client = client
    this.#reply = reply ?? client
    this.#tag = reply === undefined ? client.slots.take() : 0
    this.#commit = commit
    client.hold()
  }

  onReply(_tag: number, bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void {
    if (isLast && type !== 0x2d) {
      this.#commit()
      this.#client.stateChanged()
    }
    this.#reply.onReply(this.#tag, bytes, start, end, isLast, type)
    if (isLast) this.#client.letGo()
  }

  onLost(_tag: number, error: UpstreamLostError, wasSent: boolean): void {
    if (this.#again !== undefined && error.refusal?.toString('latin1').startsWith('-NOAUTH')) {
      this.#again()
      this.#client.letGo()
      return
    }
    this.#reply.onLost(this.#tag, error, wasSent)
    // What follows a SELECT must not run in another database: without the server's confirmation the client is closed.
    if (error.refusal === undefined) this.#client.endAfterReplies()
    this.#client.letGo()
  }
}
