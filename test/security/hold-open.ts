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
  /** What the victim used of the processor while they were held. */
  readonly cpuMs: number
  /** Connections that were still open at the end; on a busy machine some are waited for. */
  readonly open: number
  /** The beginnings of what came back, by connection. */
  readonly answers: readonly string[]
}

/** How long a victim is waited for that ought to end a connection: it may get little of a busy machine. */
const patienceMs = 45_000

/**
 * Opens `count` connections that each send a request without its end, and holds them open for `holdMs`, or until the
 * victim has ended them where that takes it longer.
 */
export async function holdOpen(
  victim: Victim,
  request: HeldRequest,
  count = 40,
  holdMs = 2000,
  waitMs = patienceMs,
): Promise<FloodCost> {
  const [before, cpuBefore] = [victim.rss(), victim.cpuMs()]
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
  const stillOpen = () => sockets.filter((socket) => !socket.destroyed && socket.readyState === 'open').length
  const until = performance.now() + waitMs
  while (stillOpen() > 0 && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 50))
  clearInterval(sampler)
  const open = stillOpen()
  const cpuMs = victim.cpuMs() - cpuBefore
  for (const socket of sockets) socket.destroy()
  return { peakBytes: peak - before, cpuMs, open, answers }
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
