import type { ProxyClient } from '../client/proxy-client.ts'
import type { UpstreamLostError } from '../errors.ts'
import { isWord } from '../requests/words.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'
import { editedText } from './reply-text.ts'

/** Which INFO asks for our section too. */
const wanting = ['firebreak', 'default', 'all', 'everything']

/** The reply to INFO, with the Firebreak section behind the server's. */
export class InfoReply implements ReplyTarget {
  readonly #client: ProxyClient
  readonly #slot: number
  readonly #wantsSection: boolean
  readonly #isCluster: boolean
  readonly #pieces: Buffer[] = []

  constructor(client: ProxyClient, slot: number) {
    this.#client = client
    this.#slot = slot
    this.#isCluster = client.host.onlyNode(client) !== undefined
    const sections = client.request.list().slice(1)
    this.#wantsSection =
      sections.length === 0 || sections.some((word) => wanting.some((wanted) => isWord(word, wanted)))
  }

  onReply(_tag: number, bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void {
    const isText = type === 0x24 || type === 0x3d
    if (!(this.#wantsSection || this.#isCluster) || !isText) {
      this.#client.onReply(this.#slot, bytes, start, end, isLast)
      return
    }
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)))
    if (isLast) this.#client.answer(this.#slot, this.#edited(Buffer.concat(this.#pieces)))
  }

  onLost(_tag: number, error: UpstreamLostError, wasSent: boolean): void {
    this.#client.onLost(this.#slot, error, wasSent)
  }

  #edited(reply: Buffer): Buffer {
    // An empty INFO (a section that the server does not know) needs no blank line before ours.
    const gap = reply.length > 12 ? '\r\n' : ''
    const section = this.#wantsSection ? `${gap}${this.#client.host.infoSection()}` : ''
    return editedText(reply, (text) => `${this.#isCluster ? asCluster(text) : text}${section}`)
  }
}

/** Says what a client that looks for a cluster looks for; Valkey has another word for the mode. */
function asCluster(text: string): string {
  return text
    .replace(/^(redis_mode|server_mode):standalone/m, '$1:cluster')
    .replace(/^cluster_enabled:0/m, 'cluster_enabled:1')
}
