import {
  BinaryReportCursor,
  type Clock,
  decodeFrame,
  type Frame,
  FrameError,
  ReportRefusedError,
  type ReportTransport,
} from '@firebreak/core'
import { isSignature, signatureHeaders } from '@firebreak/core/node'
import { type AppGrant, anyApp, ScopeError } from '../access/credential.ts'
import type { CredentialBook } from '../access/credential-book.ts'
import { ApiProblem } from '../errors.ts'
import type { Collector } from './collector.ts'

export interface StreamedReportsOptions {
  readonly collector: Collector
  readonly maxReportAgeMs: number
  readonly clock: Clock
  readonly book: CredentialBook
}

/** A message of a stream that should be a report. */
export interface StreamedMessage {
  readonly by: Extract<ReportTransport, 'nats' | 'kafka'>
  readonly data: Uint8Array
  /** How long ago the stream received it. */
  readonly ageMs: number
  header(name: string): string | undefined
}

/**
 * How far the clock of whoever signed a report may be from ours: somebody who has read the stream can replay a report once
 * the hub has forgotten its process, and with it the sequence of its reports.
 */
const maxSkewMs = 5 * 60_000

/**
 * Counts what streams (NATS, Kafka) deliver. A message is accepted as a whole, or refused and counted by cause; nothing
 * is returned to the stream, because it would be refused again.
 */
export class StreamedReports {
  readonly #options: StreamedReportsOptions
  #count = 0

  constructor(options: StreamedReportsOptions) {
    this.#options = options
  }

  /** Reports received this way since the start, including refused ones. */
  get count(): number {
    return this.#count
  }

  take(message: StreamedMessage): void {
    const { collector, maxReportAgeMs } = this.#options
    this.#count++
    try {
      if (message.ageMs > maxReportAgeMs) {
        collector.countRefusal('expired')
        return
      }
      const grant = this.#senderOf(message)
      const frame = decodeFrame(message.data)
      if (frame.type !== 'report') throw new FrameError(`a ${frame.type} frame is not a report`)
      if (this.#options.book.isLocked && !this.#isRecent(frame, message.ageMs)) {
        collector.countRefusal('expired')
        return
      }
      collector.collectBinary(frame.bytes, frame.payloadStart, frame.sequence, grant, undefined, message.by)
    } catch (error) {
      if (error instanceof FrameError) collector.countRefusal('unparsable')
      else if (!(error instanceof ReportRefusedError || error instanceof ApiProblem)) throw error
    }
  }

  #isRecent({ bytes, payloadStart }: Frame, ageMs: number): boolean {
    const { sendTs } = new BinaryReportCursor(bytes, payloadStart)
    // A stamp from the future is a wrong clock, not a negative age.
    return Math.abs(this.#options.clock.now() - Math.max(0, ageMs) - sendTs) <= maxSkewMs
  }

  /** The sender of the report: a stream's users are not ours, so each report is signed with its app token. */
  #senderOf(message: StreamedMessage): AppGrant {
    const { book, collector } = this.#options
    // While the store, which may hold tokens, has not answered, nobody can be told from a stranger.
    if (!book.isLocked && book.isKnown) return anyApp
    const signer = book.signer(message.header(signatureHeaders.key) ?? '')
    const signature = message.header(signatureHeaders.signature) ?? ''
    if (signer !== undefined && isSignature(signer.reportKey, message.data, signature)) return signer.grant
    collector.countRefusal('scope')
    throw new ScopeError('report refused: it is not signed with an app token')
  }
}
