import type { HubAddress } from './hub-address.ts'

/** What a connection to a hub reports to the link; never before `open` has returned, and nothing after `onClose`. */
export interface HubChannelOwner {
  onOpen(): void
  /** A message arrived; not binary if the other side is not one of ours. */
  onMessage(bytes: Uint8Array, isBinary: boolean): void
  /** It is gone; called once, with what ended it, or undefined if the hub closed it normally. */
  onClose(failure: unknown): void
}

/** A connection to a hub: whole frames in both directions. */
export interface HubChannel {
  send(frame: Uint8Array): void
  /** Bytes waiting to be sent. */
  readonly bufferedBytes: number
  /** Closes normally; the owner is notified when it is closed. */
  close(): void
  /** Closes at once; the owner is notified. */
  terminate(): void
}

/** How to reach hubs: over WebSockets, or a simulation's substitute. */
export interface HubTransport {
  open(address: HubAddress, token: string | undefined, owner: HubChannelOwner): HubChannel
  /** True if reports can go out over HTTP while there is no connection. */
  readonly hasHttp: boolean
}
