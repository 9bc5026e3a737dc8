import type { HubAddress } from './hub-address.ts'

/** What a connection to a hub tells the link; never before `open` has returned, and nothing after `onClose`. */
export interface HubChannelOwner {
  onOpen(): void
  /** A message came; not binary where the other side is not one of ours. */
  onMessage(bytes: Uint8Array, isBinary: boolean): void
  /** It is gone, told once: what ended it, or undefined where the hub closed it in order. */
  onClose(failure: unknown): void
}

/** A connection to a hub: whole frames in both directions. */
export interface HubChannel {
  send(frame: Uint8Array): void
  /** Bytes that wait to be sent. */
  readonly bufferedBytes: number
  /** Closes in order; the owner is told when it is closed. */
  close(): void
  /** Closes at once; the owner is told. */
  terminate(): void
}

/** How hubs are reached: over WebSockets, or what a simulation has instead. */
export interface HubTransport {
  open(address: HubAddress, token: string | undefined, owner: HubChannelOwner): HubChannel
  /** True where reports can go out over HTTP while no connection stands. */
  readonly hasHttp: boolean
}
