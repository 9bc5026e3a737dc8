import { decodeFrame, FrameError, ReportRefusedError, type ReportTransport } from '@firebreak/core'
import { isSignature, signatureHeaders } from '@firebreak/core/node'
import { type AppGrant, anyApp, ScopeError } from '../access/credential.ts'
import type { CredentialBook } from '../access/credential-book.ts'
import { ApiProblem } from '../errors.ts'
import type { Collector } from './collector.ts'

export interface StreamedReportsOptions {
  readonly collector: Collector
  readonly maxReportAgeMs: number
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
      collector.collectBinary(frame.bytes, frame.payloadStart, frame.sequence, grant, undefined, message.by)
    } catch (error) {
      if (error instanceof FrameError) collector.countRefusal('unparsable')
      else if (!(error instanceof ReportRefusedError || error instanceof ApiProblem)) throw error
    }
  }

  /** The sender of the report: a stream's users are not ours, so each report is signed with its app token. */
  #senderOf(message: StreamedMessage): AppGrant {
    const { book, collector } = this.#options
    if (!book.isLocked) return anyApp
    const signer = book.signer(message.header(signatureHeaders.key) ?? '')
    const signature = message.header(signatureHeaders.signature) ?? ''
    if (signer !== undefined && isSignature(signer.reportKey, message.data, signature)) return signer.grant
    collector.countRefusal('scope')
    throw new ScopeError('report refused: it is not signed with an app token')
  }
}
