import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** Where a Redis server is and how to log in. */
export interface ServerAddress {
  readonly host: string
  readonly port: number
  readonly username?: string
  readonly password?: string
  /** @default false */
  readonly tls?: boolean
}

/** Opens a socket without waiting for it to be connected. */
export function openSocket(address: ServerAddress): Socket {
  const { host, port } = address
  const socket = address.tls ? connectTls({ host, port, servername: host }) : connectTcp({ host, port })
  socket.setNoDelay(true)
  socket.setKeepAlive(true, 5000)
  return socket
}

/** The AUTH command of an address, undefined where it has no password. */
export function authCommand({ username, password }: ServerAddress): string[] | undefined {
  if (password === undefined) return undefined
  return username === undefined ? ['AUTH', password] : ['AUTH', username, password]
}
