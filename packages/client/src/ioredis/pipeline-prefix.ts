import type { PipelineStream, WritableSocket } from './ioredis-client.ts'

type Piece = string | Buffer

/**
 * Handles what is sent in the middle of a pipeline. ioredis collects the bytes of a pipeline until its last command,
 * but immediately registers each command as one whose answer is due. Anything else sent over the same connection
 * meanwhile would be on the wire before the pipeline but registered after its first commands, and the answers would be
 * swapped. So its bytes go into the pipeline, before those of the command that it must not follow.
 */
export class PipelinePrefix {
  readonly #socket: WritableSocket
  readonly #pieces: Piece[] = []
  /** For the pipeline's own command, which counts as one write. */
  readonly own: PipelineStream

  constructor(pipeline: PipelineStream, socket: WritableSocket) {
    this.#socket = socket
    const shown = { isPipeline: true, ...(pipeline.destination !== undefined && { destination: pipeline.destination }) }
    this.own = { ...shown, write: (data) => pipeline.write(joined([...this.#pieces.splice(0), data])) }
  }

  /** Sends something; whatever would go out over the pipeline's connection is kept for the pipeline. */
  gather<Result>(send: () => Result): Result {
    const socket = this.#socket
    const before = Object.getOwnPropertyDescriptor(socket, 'write')
    const write = (data: Piece) => {
      this.#pieces.push(data)
      return true
    }
    Object.defineProperty(socket, 'write', { value: write, configurable: true, writable: true })
    try {
      return send()
    } finally {
      if (before === undefined) delete (socket as Partial<WritableSocket>).write
      else Object.defineProperty(socket, 'write', before)
    }
  }
}

function joined(pieces: readonly Piece[]): Piece {
  if (pieces.every((piece) => typeof piece === 'string')) return pieces.join('')
  return Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece)))
}
