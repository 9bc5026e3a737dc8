import { spawn } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { FindError } from '../errors.ts'
import { type Finding, newFileFinding } from '../findings/finding.ts'
import type { Progress } from '../scan/run-on-nodes.ts'
import { type CaptureCounts, CaptureReader, type CaptureReaderOptions } from './capture-reader.ts'

/** How the network is read. */
export interface CaptureOptions extends CaptureReaderOptions {
  /** A capture to read instead of the network; `-` is standard input. */
  readonly file?: string
  /** The interface. @default 'any' */
  readonly interface?: string
  /** How long to capture. @default 10000 */
  readonly durationMs?: number
  /** Stops after this many bytes of packets. @default 4 GiB */
  readonly maxBytes?: number
  /** The kernel's buffer for unread packets, in KiB. @default 65536 */
  readonly bufferKib?: number
  /** The capture program. @default 'tcpdump' */
  readonly program?: string
  /** Keys kept. @default 20 */
  readonly top?: number
  readonly signal?: AbortSignal
  readonly progress?: (progress: Progress) => void
}

/** The result of a capture: the reader with its counts, and how much the kernel dropped. */
export interface CaptureResult {
  readonly reader: CaptureReader
  readonly seconds: number
  /** Packets that the kernel dropped before tcpdump read them. */
  readonly dropped: number
  readonly isComplete: boolean
  readonly source: string
}

/** Finds the hottest keys by reading the network, or a capture of it. The servers do not notice. */
export async function findHotByCapture(options: CaptureOptions = {}): Promise<Finding> {
  const startedAtMs = Date.now()
  const result = await runCapture(options)
  const { reader } = result
  return newFileFinding('hot', 'capture', result.source, startedAtMs, {
    isComplete: result.isComplete,
    scanned: reader.counts.commands,
    keys: reader.counter.hottest(options.top ?? 20, result.seconds),
    counts: { ...reader.counts, dropped: result.dropped, accesses: reader.counter.accesses },
    notes: notesOf(reader.counts, result.dropped, options),
  })
}

/** Reads the network or a file until the limit of time, bytes or packets. */
export async function runCapture(options: CaptureOptions): Promise<CaptureResult> {
  return options.file === undefined ? captureLive(options) : captureFile(options.file, options)
}

async function captureFile(file: string, options: CaptureOptions): Promise<CaptureResult> {
  const reader = new CaptureReader(options)
  const stream = file === '-' ? process.stdin : createReadStream(file, { highWaterMark: 1 << 20 })
  let bytes = 0
  let isComplete = true
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    reader.push(chunk)
    bytes += chunk.length
    options.progress?.({ unit: 'bytes', done: bytes, total: 0 })
    if (options.signal?.aborted) {
      isComplete = false
      break
    }
  }
  reader.end(!isComplete)
  return { reader, seconds: reader.seconds, dropped: 0, isComplete, source: file }
}

function captureLive(options: CaptureOptions): Promise<CaptureResult> {
  const { durationMs = 10_000, maxBytes = 4 * 2 ** 30, program = 'tcpdump', signal } = options
  const device = options.interface ?? 'any'
  const ports = options.ports ?? [6379]
  const filter = ports.map((port) => `tcp dst port ${port}`).join(' or ')
  const reader = new CaptureReader(options)
  // -U: each packet as it arrives; -n: no name look-ups; -s 0: whole packets.
  const args = ['-i', device, '-n', '-U', '-s', '0', '-B', String(options.bufferKib ?? 65536), '-w', '-', filter]
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    let errors = ''
    let bytes = 0
    let failure: Error | undefined
    let isComplete = true
    const startedAt = performance.now()
    let seconds = durationMs / 1000
    const stop = () => {
      seconds = Math.min(seconds, (performance.now() - startedAt) / 1000)
      child.kill('SIGINT')
    }
    const timer = setTimeout(stop, durationMs)
    const onAbort = () => {
      isComplete = false
      stop()
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    child.stderr.on('data', (chunk) => {
      errors = (errors + String(chunk)).slice(-4096)
    })
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      try {
        reader.push(chunk)
      } catch (error) {
        failure ??= error as Error
        stop()
      }
      options.progress?.({ unit: 'commands', done: reader.counts.commands, total: 0 })
      if (bytes > maxBytes) onAbort()
    })
    child.on('error', (cause) => {
      failure = new FindError(
        'FB_CAPTURE_FAILED',
        `cannot start ${program}: ${cause.message}; install it, or capture elsewhere with "tcpdump -w x.pcap" and pass --file x.pcap`,
        { cause },
      )
      finish(0)
    })
    child.on('close', (code) => finish(code ?? 0))
    const finish = (code: number) => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      const lines = errors.trim().split('\n')
      if (failure === undefined && code !== 0) failure = captureFailure(program, lines.at(-1) ?? '')
      if (failure !== undefined) return reject(failure)
      reader.end(true)
      const dropped = Number(/(\d+) packets? dropped by kernel/.exec(errors)?.[1] ?? 0)
      resolve({ reader, seconds, dropped, isComplete, source: `${device} port ${ports.join(', ')}` })
    }
  })
}

function captureFailure(program: string, reason: string): FindError {
  const hint = /permission|not permitted/i.test(reason) ? '; it needs root or CAP_NET_RAW' : ''
  return new FindError('FB_CAPTURE_FAILED', `${program} ended: ${reason}${hint}`)
}

/** What a reader of the finding must know about its gaps. */
export function notesOf(counts: CaptureCounts, dropped: number, options: CaptureOptions): string[] {
  const notes: string[] = []
  const ports = (options.ports ?? [6379]).join(', ')
  if (counts.tlsConnections > 0) {
    notes.push(
      `${counts.tlsConnections} connections use TLS and cannot be read from the network. Capture between a TLS proxy and Redis, or use --monitor or --scan`,
    )
  }
  if (dropped > 0) notes.push(`the kernel dropped ${dropped} packets: counts are too low (a larger --buffer helps)`)
  if (counts.gaps > 0)
    notes.push(`${counts.lostBytes} bytes were missing in ${counts.gaps} places: the commands there were not counted`)
  if (counts.fragments > 0) notes.push(`${counts.fragments} IP fragments were left out`)
  if (counts.unknownLinks > 0) notes.push(`${counts.unknownLinks} packets are from an unknown type of network`)
  if (counts.commands === 0 && counts.tlsConnections === 0) {
    notes.push(`no command to port ${ports} was seen: is this the right host, interface and port?`)
  }
  return notes
}
