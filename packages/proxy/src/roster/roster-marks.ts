import { encodeCommand } from '@firebreak/core/resp'
import type { ProxyClient } from '../client/proxy-client.ts'
import type { ReplyMark } from '../lanes/pinned-lane.ts'
import { editedText, isText } from '../replies/reply-text.ts'
import { addressFilter, type ClientFilter, clientFilterOf, type RosterRow } from './client-filter.ts'
import { isMeant, listedClient, rowFields, rowWith } from './listed-client.ts'

const ok = Buffer.from('+OK\r\n')
const integer = 0x3a
/** Kills nobody: no server has assigned that id. The answer shows whether the sender may kill others. */
const killNobody = encodeCommand(['CLIENT', 'KILL', 'ID', '999999999999999'])

/**
 * CLIENT LIST: a client with a dedicated connection appears in that connection's row, with its own id and address; the
 * others follow the server's rows.
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

/** The server's rows, merged with the proxy's clients. */
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

/** CLIENT INFO: the row of the client's dedicated connection, with the client's own id and address. */
export function rowMark(client: ProxyClient): ReplyMark {
  return {
    command: client.request.command,
    complete: (reply, answer) =>
      answer(isText(reply) ? editedText(reply, (text) => rowWith(text, rowFields(client))) : reply),
  }
}

/**
 * CLIENT ID: the server's id of the connection that the client keeps from then on, so that it can be used for
 * redirection and unblocking. If requests go to many nodes, none of them knows the client, and its id is the proxy's.
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
 * CLIENT KILL: first the server closes its connections, then the proxy its clients. The server decides whether the
 * sender may do so: nobody is closed if it answers with an error other than that there is no such client.
 *
 * An address may be a client's here and, if the ports happen to match, someone else's at the server. So for an address
 * the proxy checks first, and the server only closes a connection if no client has that address.
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
  // Inside a transaction only the server carries it out, with EXEC.
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

/** The server has closed what it knows; the proxy's own clients are counted along with that. */
function alsoHere(client: ProxyClient, filter: ClientFilter, reply: Buffer, answer: (reply: Buffer) => void): void {
  if (reply[0] !== integer) {
    answer(reply)
    return
  }
  killHere(client, filter, (killed) => answer(Buffer.from(`:${Number(reply.toString('latin1', 1)) + killed}\r\n`)))
}

/** Closes the matching clients of the proxy, the sender after it has its answer. */
function killHere(client: ProxyClient, filter: ClientFilter, onDone: (killed: number) => void): void {
  // The connection that it has for this command is counted by the server.
  const endsAsker = !filter.skipsAsker && isMeant({ ...listedClient(client), isKnownToServer: false }, filter)
  // If it closes itself, what it sent after this is not carried out.
  client.hold()
  client.host.roster.ask({ act: 'kill', filter }, client, ({ killed }) => {
    onDone(killed)
    if (endsAsker) client.endAfterReplies()
    client.letGo()
  })
}
