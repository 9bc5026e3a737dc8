/** A sensor's connection as its session needs it: frames in both directions, whatever carries them. */
export interface SensorChannel {
  /** `isShared` where the same bytes go to many sensors. */
  send(frame: Uint8Array, isShared?: boolean): void
  /** Bytes that wait to be sent. */
  readonly bufferedBytes: number
  /** Told of each frame that comes in; once, by the session. */
  onFrame(listener: (frame: Uint8Array) => void): void
  /** Told when the connection has ended, whoever ended it. */
  onClose(listener: () => void): void
  /** Ends the connection; the reason is told to the other side. */
  close(code: number, reason: string): void
}

/** Close codes: 1002 and 1008 of RFC 6455, our own from 4000 on. */
export const closeCodes = { protocol: 1002, refused: 1008, goingAway: 1001, tooSlow: 4001 } as const
