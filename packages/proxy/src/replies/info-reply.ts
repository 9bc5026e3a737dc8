import type { ProxyClient } from '../client/proxy-client.ts'
import type { UpstreamLostError } from '../errors.ts'
import type { ReplyMark } from '../lanes/pinned-lane.ts'
import { isWord } from '../requests/words.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'
import { editedText, isText } from './reply-text.ts'

/** The INFO sections that include ours. */
const wanting = ['firebreak', 'default', 'all', 'everything']

/** Turns the server's answer into the client's. */
type Edit = (reply: Buffer) => Buffer

/** The reply to INFO, with the Firebreak section appended. */
export class InfoReply implements ReplyTarget {
  readonly #client: ProxyClient
  readonly #slot: number
  readonly #edit: Edit | undefined
  readonly #pieces: Buffer[] = []

  constructor(client: ProxyClient, slot: number) {
    this.#client = client
    this.#slot = slot
    this.#edit = editOf(client)
  }

  onReply(_tag: number, bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.#edit === undefined) {
      this.#client.onReply(this.#slot, bytes, start, end, isLast)
      return
    }
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)))
    if (isLast) this.#client.answer(this.#slot, this.#edit(Buffer.concat(this.#pieces)))
  }

  onLost(_tag: number, error: UpstreamLostError, wasSent: boolean): void {
    this.#client.onLost(this.#slot, error, wasSent)
  }
}

/** The same over a client's dedicated connection; in a transaction it arrives with EXEC, unchanged. */
export function infoMark(client: ProxyClient): ReplyMark | undefined {
  const { command } = client.request
  if (command.way !== 'info' || client.own.pinned?.hasSentMulti === true) return undefined
  const edit = editOf(client)
  return edit && { command, complete: (reply, answer) => answer(edit(reply)) }
}

/** How to change the reply to the current INFO; undefined if it stays unchanged. */
function editOf(client: ProxyClient): Edit | undefined {
  const sections = client.request.list().slice(1)
  const wantsSection = sections.length === 0 || sections.some((word) => wanting.some((wanted) => isWord(word, wanted)))
  const isCluster = client.host.onlyNode(client) !== undefined
  if (!wantsSection && !isCluster) return undefined
  return (reply) => {
    if (!isText(reply)) return reply
    // An empty INFO (a section that the server does not know) needs no blank line before ours.
    const gap = reply.length > 12 ? '\r\n' : ''
    const section = wantsSection ? `${gap}${client.host.infoSection()}` : ''
    return editedText(reply, (text) => `${isCluster ? asCluster(text) : text}${section}`)
  }
}

/** Sets the fields by which a client detects a cluster; Valkey uses another word for the mode. */
function asCluster(text: string): string {
  return text
    .replace(/^(redis_mode|server_mode):standalone/gm, '$1:cluster')
    .replace(/^cluster_enabled:0/m, 'cluster_enabled:1')
}
