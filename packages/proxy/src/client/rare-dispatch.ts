import { encodeReply, mayBlock } from '@firebreak/core'
import { clusterOfOne } from '../cluster/cluster-of-one.ts'
import type { ClusterSettings } from '../cluster/cluster-sender.ts'
import { firebreakCommand } from '../observe/firebreak-command.ts'
import { InfoReply } from '../replies/info-reply.ts'
import { carryOut } from '../session/session-commands.ts'
import type { SharedLane } from '../upstream/shared-lane.ts'
import type { ClientConnection } from './client-connection.ts'

/** For a client that has not said who it is, where it has to. */
const noAuthReply: Buffer = Buffer.from('-NOAUTH Authentication required.\r\n')

/** Sends what is not plainly sent on its way; false where it has to wait. */
export function dispatchRare(client: ClientConnection): boolean {
  const { command } = client.request
  if (!client.session.isKnown && command.way !== 'session') {
    client.answerNow(noAuthReply)
    return true
  }
  switch (command.way) {
    case 'session':
      return carryOut(client)
    case 'own': {
      const { shield } = client.host
      if (shield !== undefined && client.args.length === 3 && client.args.isWord(1, 'PEEK')) {
        client.answerNow(shield.peek(client, client.request.argument(2)))
        return true
      }
      const words = client.request.list().map((word) => Buffer.from(word).toString())
      client.answerNow(encodeReply(firebreakCommand(words.slice(1), client.host.observed), client.session.version))
      return true
    }
    case 'cluster': {
      const only = client.host.onlyNode(client)
      if (only === undefined) return seeAndSend(client, client.lanes.forCommands())
      client.answerNow(encodeReply(clusterOfOne(command.name, only), client.session.version))
      return true
    }
    case 'info': {
      const reply = new InfoReply(client, client.slots.take())
      client.sendShared(client.lanes.forCommands(), reply, 0)
      return true
    }
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

/** Sends a request to a cluster; false where it has to wait. */
export function dispatchToCluster(client: ClientConnection, cluster: ClusterSettings): boolean {
  if (client.session.isKnown || client.request.command.way === 'session') return client.dispatchTo(cluster).dispatch()
  client.answerNow(noAuthReply)
  return true
}

function seeAndSend(client: ClientConnection, lane: SharedLane): boolean {
  const { shield } = client.host
  const seen = shield?.see(client, client.request.command, client) ?? client
  if (seen === 'held') return false
  if (seen !== 'answered') client.sendShared(lane, seen)
  return true
}
