/** One report in transit over a stream. */
export interface StreamedReport {
  readonly frame: Uint8Array
  /** The same on every attempt to send this report. */
  readonly id: string
  /** A stream that preserves order does so per instance. */
  readonly instanceId: string
  readonly headers: Readonly<Record<string, string>>
}

/** A third party that carries reports from sensors to hubs: NATS, Kafka. */
export interface ReportStream {
  /** The name that users know. */
  readonly name: string
  /** Identifies its problems among a shield's warnings. */
  readonly troubleId: string
  /**
   * Connects, and reports whenever the connection comes and goes. Resolves or rejects once it has ended for good: then
   * it is reopened.
   */
  open(onUp: (isUp: boolean) => void): Promise<void>
  /** Resolves once the stream has the report. */
  publish(report: StreamedReport): Promise<void>
  close(): Promise<void>
}
