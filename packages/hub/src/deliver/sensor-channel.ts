/** A sensor's connection as its session needs it: frames in both directions, whatever carries them. */
export interface SensorChannel {
  /** `isShared` if the same bytes go to many sensors. */
  send(frame: Uint8Array, isShared?: boolean): void
  /** Bytes waiting to be sent. */
  readonly bufferedBytes: number
  /** Registers the session as listener for incoming frames; called once. */
  onFrame(listener: (frame: Uint8Array) => void): void
  /** Called when the connection has ended, whichever side ended it. */
  onClose(listener: () => void): void
  /** Closes the connection; the reason is sent to the other side. */
  close(code: number, reason: string): void
}

/** Close codes: 1002 and 1008 of RFC 6455, our own from 4000 on. */
export const closeCodes = { protocol: 1002, refused: 1008, goingAway: 1001, tooSlow: 4001 } as const
