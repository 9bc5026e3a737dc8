import { ReplyDecoder, type RespValue } from '@firebreak/core/resp'
import type { PipeEnd } from './pipe-end.ts'

/** RESP on one connection: bytes out, whole replies and pushes in. */
export class RespPipe {
  onConnect: () => void = () => {}
  onReply: (reply: RespValue) => void = () => {}
  onClose: (reason: string) => void = () => {}
  readonly #end: PipeEnd
  readonly #decoder = new ReplyDecoder({ bulk: 'copy' })

  constructor(end: PipeEnd) {
    this.#end = end
    end.onConnect = () => this.onConnect()
    end.onData = (bytes) => this.#received(bytes)
    end.onClose = (error) => this.onClose(error?.message ?? 'the server ended it')
  }

  write(bytes: Uint8Array): void {
    this.#end.write(bytes)
  }

  destroy(): void {
    this.#end.destroy()
  }

  #received(bytes: Uint8Array): void {
    this.#decoder.feed(bytes)
    for (let reply = this.#decoder.next(); reply !== undefined && !this.#end.isClosed; reply = this.#decoder.next()) {
      this.onReply(reply)
    }
  }
}
