import { connect, type Socket } from 'node:net'
import type { Victim } from './victims.ts'

const plainPiece = Buffer.alloc(64 * 1024, 0x61)

/** What one connection of a flood sends before it falls silent: a beginning, then so many bytes that never end. */
export interface HeldRequest {
  readonly port: number
  readonly head: string | Buffer
  readonly bytes: number
  /** A beginning of its own for each connection. */
  readonly headOf?: () => string | Buffer
  /** What they are, over and over. @default 64 KiB of one letter */
  readonly piece?: Buffer
}

/** What a flood cost. */
export interface FloodCost {
  /** The most memory over what it was before. */
  readonly peakBytes: number
  /** Connections that were still open at the end. */
  readonly open: number
  /** The beginnings of what came back, by connection. */
  readonly answers: readonly string[]
}

/** Opens `count` connections that each send a request without its end, and holds them open for `holdMs`. */
export async function holdOpen(victim: Victim, request: HeldRequest, count = 40, holdMs = 2000): Promise<FloodCost> {
  const before = victim.rss()
  let peak = before
  const sampler = setInterval(() => (peak = Math.max(peak, victim.rss())), 20)
  const sockets: Socket[] = []
  const answers: string[] = []
  for (let nth = 0; nth < count; nth++) {
    const socket = connect(request.port, '127.0.0.1')
    answers.push('')
    socket.on('data', (chunk) => (answers[nth] = (answers[nth]! + chunk.toString('latin1')).slice(0, 500)))
    socket.on('error', () => {})
    send(socket, request)
    sockets.push(socket)
  }
  await new Promise((resolve) => setTimeout(resolve, holdMs))
  clearInterval(sampler)
  const open = sockets.filter((socket) => !socket.destroyed && socket.readyState === 'open').length
  for (const socket of sockets) socket.destroy()
  return { peakBytes: peak - before, open, answers }
}

function send(socket: Socket, { head, headOf, bytes, piece = plainPiece }: HeldRequest): void {
  socket.write(headOf?.() ?? head)
  let left = bytes
  const more = () => {
    while (left > 0 && !socket.destroyed) {
      left -= piece.length
      if (!socket.write(piece)) return void socket.once('drain', more)
    }
  }
  more()
}
