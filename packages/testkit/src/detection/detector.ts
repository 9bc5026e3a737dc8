/** Finds hot keys in a replay: a hub, or several hubs that share the hosts. */
export interface Detector {
  /** The length of a step, in milliseconds of the replay. */
  readonly stepMs: number
  /** Accepts a host's report, at a time of the replay in milliseconds from its start; times never go back. */
  take(report: Uint8Array, host: number, atMs: number): Promise<void>
  /** Advances to a time, the end of a step; resolves once everything due by then is decided and known everywhere. */
  moveTo(atMs: number): Promise<void>
  /** The factor that a host should sample with. */
  factorOf(host: number): number
  /** The keys that are currently hot, for every host. */
  hot(): ReadonlySet<string>
  /** The keys that became hot since the last call, for any host. */
  takeAlarms(): readonly string[]
  close(): Promise<void>
}

/** What a detector should find. */
export interface DetectionRule {
  /** A key is hot from this many accesses in a window … */
  readonly threshold: number
  /** … until it has fewer than this. */
  readonly exit: number
  readonly windowMs: number
  readonly minHoldMs: number
  /** How often each host reports. */
  readonly intervalMs: number
  /** Rows per second accepted from all hosts together. */
  readonly rowsPerSecond: number
}

/** Makes a detector for the rule that a trace gave. */
export type OpenDetector = (rule: DetectionRule) => Detector | Promise<Detector>
