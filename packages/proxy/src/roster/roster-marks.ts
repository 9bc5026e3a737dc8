import type { ProxyClient } from '../client/proxy-client.ts'
import type { ReplyMark } from '../lanes/pinned-lane.ts'
import { longerText } from '../replies/reply-text.ts'
import { addressFilter, clientFilterOf } from './client-filter.ts'
import { isMeant, listedClient } from './listed-client.ts'

const ok = Buffer.from('+OK\r\n')
const bulk = 0x24
const verbatim = 0x3d
const integer = 0x3a

/** CLIENT LIST: behind the server's connections stand the clients of the proxy that have none to themselves. */
export function listMark(client: ProxyClient): ReplyMark | undefined {
  const { command } = client.request
  const filter = clientFilterOf(client.request.list().slice(2))
  if (filter === undefined) return undefined
  return {
    command,
    complete: (reply, answer) => {
      if (reply[0] !== bulk && reply[0] !== verbatim) answer(reply)
      else client.host.roster.ask({ act: 'list', filter }, client, ({ lines }) => answer(longerText(reply, lines)))
    },
  }
}

/**
 * CLIENT KILL: the server ends connections to it, then the proxy its clients. Whether the asker may do so is the server's
 * matter, and nobody is closed where it answers with an error other than that there is no such client.
 */
export function killMark(client: ProxyClient): ReplyMark | undefined {
  const { command } = client.request
  const words = client.request.list().slice(2)
  const filter = words.length === 1 ? addressFilter(words[0]!) : clientFilterOf(words)
  if (filter === undefined || words.length === 0) return undefined
  return {
    command,
    complete: (reply, answer) => {
      const isNobody = reply.toString('latin1').startsWith('-ERR No such client')
      if (reply[0] !== integer && !isNobody && !reply.equals(ok)) {
        answer(reply)
        return
      }
      // The connection that it has for this command is the server's to count.
      const endsAsker = !filter.skipsAsker && isMeant({ ...listedClient(client), isKnownToServer: false }, filter)
      client.host.roster.ask({ act: 'kill', filter }, client, ({ killed }) => {
        if (reply[0] === integer) answer(Buffer.from(`:${Number(reply.toString('latin1', 1)) + killed}\r\n`))
        else answer(isNobody && killed > 0 ? ok : reply)
        if (endsAsker) client.endAfterReplies()
      })
    },
  }
}
