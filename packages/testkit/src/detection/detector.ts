/** Whoever finds hot keys in a replay: a hub, or several hubs that share the hosts. */
export interface Detector {
  /** How often it is to be moved on, in milliseconds of the replay. */
  readonly stepMs: number
  /** Takes a host's report, at a time of the replay in milliseconds from its beginning; times never go back. */
  take(report: Uint8Array, host: number, atMs: number): Promise<void>
  /** Moves on to a time, the end of a step; resolves once all that is due by then is decided and known everywhere. */
  moveTo(atMs: number): Promise<void>
  /** The factor that a host is told to sample with. */
  factorOf(host: number): number
  /** The keys that are hot now, for every host. */
  hot(): ReadonlySet<string>
  /** The keys that became hot since the last call, for any host. */
  takeAlarms(): readonly string[]
  close(): Promise<void>
}

/** What a detector is to find. */
export interface DetectionRule {
  /** A key is hot from so many accesses in a window on … */
  readonly threshold: number
  /** … until it has fewer than this. */
  readonly exit: number
  readonly windowMs: number
  readonly minHoldMs: number
  /** How often each host reports. */
  readonly intervalMs: number
  /** Rows a second that are taken of all hosts together. */
  readonly rowsPerSecond: number
}

/** Makes a detector for the rule that a trace gave. */
export type OpenDetector = (rule: DetectionRule) => Detector | Promise<Detector>
