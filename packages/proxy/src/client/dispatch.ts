import { mayBlock } from '@firebreak/core/commands'
import { encodeCommand, encodeReply } from '@firebreak/core/resp'
import { answerAsOnlyNode, isForOnlyNode } from '../cluster/only-node-commands.ts'
import { firebreakCommand } from '../observe/firebreak-command.ts'
import { AllowedReply } from '../replies/allowed-reply.ts'
import { InfoReply } from '../replies/info-reply.ts'
import { isWord } from '../requests/words.ts'
import { carryOut } from '../session/session-commands.ts'
import { nobody } from '../upstream/identity.ts'
import type { ReplyTarget, SharedLane } from '../upstream/shared-lane.ts'
import type { ProxyClient } from './proxy-client.ts'

/** For a client that must authenticate and has not. */
const noAuthReply: Buffer = Buffer.from('-NOAUTH Authentication required.\r\n')
const ping = encodeCommand(['PING'])

/** Routes the current request; false if it has to wait. */
export function dispatch(client: ProxyClient): boolean {
  const { request, host, session, own, cluster } = client
  const { command } = request
  if (cluster !== undefined) {
    if (client.standing.isPatienceOver()) return true
    if (session.isKnown || command.way === 'session') return cluster.dispatch()
    client.answerNow(noAuthReply)
    return true
  }
  if (own.pinned !== undefined) return own.dispatch(own.pinned)
  if (command.isShared && !host.isIsolated && session.isKnown && !client.backlog.isHeavy) {
    let target: ReplyTarget = client
    const { shield } = host
    if (shield !== undefined) {
      const seen = shield.see(client, command, client)
      if (seen === 'answered') return true
      if (seen === 'held') return false
      target = seen
    }
    client.sendShared(client.lanes.forCommands(), target)
    return true
  }
  return dispatchRare(client)
}

/** Like `dispatch`, for what is not simply forwarded. */
export function dispatchRare(client: ProxyClient): boolean {
  const { command } = client.request
  if (client.standing.isPatienceOver()) return true
  if (!client.session.isKnown && command.way !== 'session') {
    client.answerNow(noAuthReply)
    return true
  }
  if (isForOnlyNode(client)) {
    answerAsOnlyNode(client)
    return true
  }
  switch (command.way) {
    case 'session':
      return carryOut(client)
    case 'own':
      return answerOwn(client)
    case 'cluster':
      return seeAndSend(client, client.lanes.forCommands())
    case 'info':
      client.sendShared(client.lanes.forCommands(), new InfoReply(client, client.slots.take()), 0)
      return true
    case 'script': {
      if (client.host.isIsolated) return client.own.borrow()
      const lane = client.lanes.forScripts()
      return lane === undefined ? client.waitForReplies() : seeAndSend(client, lane)
    }
    case 'shared':
      if (client.host.isIsolated || client.backlog.isHeavy || (command.mayBlock && mayBlock(command.row!, client.args)))
        return client.own.borrow()
      return seeAndSend(client, client.lanes.forCommands())
    default:
      return client.own.borrow()
  }
}

/**
 * The proxy's own command. It tells of other clients and of the nodes, so a client that has shown no password is answered
 * only where Redis answers such clients. Where that is not known, or was not so, a PING in the client's name asks.
 */
function answerOwn(client: ProxyClient): boolean {
  const { host, session, slots } = client
  const words = client.request.list().map((word) => Buffer.from(word))
  const answer = () => ownReply(client, words)
  if (host.users !== undefined || session.identity.id !== nobody.id || host.strangerAccess.areLetIn) {
    client.answerNow(answer())
    return true
  }
  if (slots.owed > 0) return client.waitForReplies()
  client.request.rewrite(ping)
  client.sendShared(client.lanes.forCommands(), new AllowedReply(client, slots.take(), answer), 0)
  return true
}

function ownReply(client: ProxyClient, words: readonly Buffer[]): Uint8Array {
  const { shield, observed } = client.host
  const [, subcommand, key] = words
  if (shield !== undefined && words.length === 3 && isWord(subcommand!, 'peek')) return shield.peek(client, key!)
  const texts = words.slice(1).map((word) => word.toString())
  return encodeReply(firebreakCommand(texts, observed), client.session.version)
}

function seeAndSend(client: ProxyClient, lane: SharedLane): boolean {
  const seen = client.host.shield?.see(client, client.request.command, client) ?? client
  if (seen === 'held') return false
  if (seen !== 'answered') client.sendShared(lane, seen)
  return true
}
