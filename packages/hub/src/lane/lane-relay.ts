/** Carries invalidations between the hubs of a shared store, so that each reaches the sensors of all. */
export interface LaneRelay {
  /** Notifies the other hubs; resolves once the relay has accepted it. */
  publish(bytes: Uint8Array): Promise<void>
  /** Receives what other hubs send; calls `onGap` if something may have been missed. */
  open(onMessage: (bytes: Uint8Array) => void, onGap: () => void): Promise<void>
}
