import type { UpstreamLostError } from '../errors.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'
import type { ClientConnection } from './client-connection.ts'
import { isWord } from './words.ts'

/** Which INFO asks for our section too. */
const wanting = ['firebreak', 'default', 'all', 'everything']

/** The reply to INFO, with the Firebreak section behind the server's. */
export class InfoReply implements ReplyTarget {
  readonly #client: ClientConnection
  readonly #slot: number
  readonly #wantsSection: boolean
  readonly #pieces: Buffer[] = []

  constructor(client: ClientConnection, slot: number) {
    this.#client = client
    this.#slot = slot
    const sections = client.argumentList().slice(1)
    this.#wantsSection =
      sections.length === 0 || sections.some((word) => wanting.some((wanted) => isWord(word, wanted)))
  }

  onReply(_tag: number, bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void {
    const isText = type === 0x24 || type === 0x3d
    if (!this.#wantsSection || !isText) {
      this.#client.onReply(this.#slot, bytes, start, end, isLast)
      return
    }
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)))
    if (isLast) this.#client.answer(this.#slot, this.#withSection(Buffer.concat(this.#pieces)))
  }

  onLost(_tag: number, error: UpstreamLostError, wasSent: boolean): void {
    this.#client.onLost(this.#slot, error, wasSent)
  }

  #withSection(reply: Buffer): Buffer {
    const bodyStart = reply.indexOf(0x0a) + 1
    const body = reply.subarray(bodyStart, reply.length - 2)
    const gap = body.length > 4 ? '\r\n' : ''
    const section = Buffer.from(`${gap}${this.#client.host.infoSection()}`)
    const type = String.fromCharCode(reply[0]!)
    const head = Buffer.from(`${type}${body.length + section.length}\r\n`)
    return Buffer.concat([head, body, section, Buffer.from('\r\n')])
  }
}
