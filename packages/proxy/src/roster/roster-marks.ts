import { encodeCommand } from '@firebreak/core/resp'
import type { ProxyClient } from '../client/proxy-client.ts'
import type { ReplyMark } from '../lanes/pinned-lane.ts'
import { editedText, isText } from '../replies/reply-text.ts'
import { addressFilter, type ClientFilter, clientFilterOf, type RosterRow } from './client-filter.ts'
import { isMeant, listedClient, rowFields, rowWith } from './listed-client.ts'

const ok = Buffer.from('+OK\r\n')
const integer = 0x3a
/** Ends nobody: no server has given that id. Whether the asker may end others, the answer says. */
const killNobody = encodeCommand(['CLIENT', 'KILL', 'ID', '999999999999999'])

/**
 * CLIENT LIST: a client that has a connection for itself stands in that connection's row, by its own id and address; those
 * that have none stand behind the server's rows.
 */
export function listMark(client: ProxyClient): ReplyMark | undefined {
  const { command } = client.request
  const filter = clientFilterOf(client.request.list().slice(2))
  if (filter === undefined) return undefined
  return {
    command,
    complete: (reply, answer) => {
      if (!isText(reply)) answer(reply)
      else
        client.host.roster.ask({ act: 'list', filter }, client, ({ rows }) =>
          answer(editedText(reply, (text) => withClients(text, rows))),
        )
    },
  }
}

/** The server's rows with the proxy's clients in them and behind them. */
function withClients(text: string, rows: readonly RosterRow[]): string {
  const owners = new Map<string, RosterRow>()
  for (const row of rows) if (row.connectionAddress !== undefined) owners.set(row.connectionAddress, row)
  const shown = new Set<RosterRow>()
  const lines = text.split('\n').map((line) => {
    const owner = owners.get(/ addr=([^ ]*)/.exec(line)?.[1] ?? '')
    if (owner === undefined) return line
    shown.add(owner)
    return rowWith(line, owner.fields)
  })
  const others = rows.filter((row) => !shown.has(row)).map(({ line = '' }) => line)
  return lines.join('\n') + others.join('')
}

/** CLIENT INFO: the row of the connection that the client has for it, by the client's own id and address. */
export function rowMark(client: ProxyClient): ReplyMark {
  return {
    command: client.request.command,
    complete: (reply, answer) =>
      answer(isText(reply) ? editedText(reply, (text) => rowWith(text, rowFields(client))) : reply),
  }
}

/**
 * CLIENT ID: the server's, of the connection that the client keeps from then on; it can be redirected to and unblocked by
 * it. Where requests go to many nodes none of them knows the client, and its id is the proxy's.
 */
export function idMark(client: ProxyClient): ReplyMark {
  const { pinned, mayStay } = client.own
  return {
    command: client.request.command,
    complete: (reply, answer) => {
      if (reply[0] === integer && mayStay) pinned!.serverId = Number(reply.toString('latin1', 1))
      answer(reply[0] === integer && !mayStay ? Buffer.from(`:${client.id}\r\n`) : reply)
    },
  }
}

/**
 * CLIENT KILL: the server ends connections to it, then the proxy its clients. Whether the asker may do so is the server's
 * matter, and nobody is closed where it answers with an error other than that there is no such client.
 *
 * An address may be a client's here and, with the same port by chance, somebody else's at the server. So by an address the
 * proxy looks first, and the server ends a connection only where no client has it.
 */
export function killMark(client: ProxyClient): ReplyMark | undefined {
  const { request } = client
  const { command } = request
  const words = request.list().slice(2)
  const isOldForm = words.length === 1
  const filter = isOldForm ? addressFilter(words[0]!) : clientFilterOf(words)
  if (filter === undefined || words.length === 0) return undefined
  if (filter.address === undefined && filter.localAddress === undefined) {
    return { command, complete: (reply, answer) => alsoHere(client, filter, reply, answer) }
  }
  // Inside a transaction the server alone carries it out, with EXEC.
  if (client.own.pinned?.hasSentMulti === true) return { command }
  const asked = encodeCommand(request.list())
  request.rewrite(killNobody)
  return {
    command,
    complete: (reply, answer) => {
      if (reply[0] !== integer) {
        answer(reply)
        return
      }
      killHere(client, filter, (killed) => {
        if (killed > 0) answer(isOldForm ? ok : Buffer.from(`:${killed}\r\n`))
        else if (!client.isClosed) {
          const pinned = client.own.pinned ?? client.own.pinTo(client.host.node)
          pinned.sendHidden(asked, { command, complete: answer })
        }
      })
    },
  }
}

/** The server has ended what it knows; the proxy's own clients are counted with those. */
function alsoHere(client: ProxyClient, filter: ClientFilter, reply: Buffer, answer: (reply: Buffer) => void): void {
  if (reply[0] !== integer) {
    answer(reply)
    return
  }
  killHere(client, filter, (killed) => answer(Buffer.from(`:${Number(reply.toString('latin1', 1)) + killed}\r\n`)))
}

/** Ends the proxy's clients that are meant, the asker once it has its answer. */
function killHere(client: ProxyClient, filter: ClientFilter, onDone: (killed: number) => void): void {
  // The connection that it has for this command is the server's to count.
  const endsAsker = !filter.skipsAsker && isMeant({ ...listedClient(client), isKnownToServer: false }, filter)
  // What it has sent behind this is not carried out where it ends itself.
  client.hold()
  client.host.roster.ask({ act: 'kill', filter }, client, ({ killed }) => {
    onDone(killed)
    if (endsAsker) client.endAfterReplies()
    client.letGo()
  })
}
