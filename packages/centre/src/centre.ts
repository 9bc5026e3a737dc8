/** Follows a text. */
export interface WatchListener {
  /** The current text, undefined if there is none: called once at the start, then on every change. */
  onText(text: string | undefined): void
  /** The centre has become unreachable; called once until it recovers. */
  onDown?(error: Error): void
  /** The centre has recovered. */
  onUp?(): void
}

/** A text that is followed until `close`. */
export interface CentreWatch {
  /** True while the centre answers, so that the last reported text is the current one. */
  readonly isLive: boolean
  close(): void
}

/** Where a fleet keeps its settings: texts under paths. */
export interface ConfigCentre {
  /** Its kind and addresses, for alarms and logs; never a password. */
  readonly name: string
  /** The path under which tables are stored. */
  readonly root: string
  /** The longest text that it accepts. */
  readonly maxBytes: number
  /** The text at a path, undefined if there is none. */
  read(path: string): Promise<string | undefined>
  /** Sets the text at a path, creating any missing parents. */
  write(path: string, text: string): Promise<void>
  /**
   * Follows a path through restarts and outages of the centre. Texts are reported in the order in which they were
   * written; if several follow in quick succession, only the last is certain to be reported.
   */
  watch(path: string, listener: WatchListener): CentreWatch
  close(): Promise<void>
}
