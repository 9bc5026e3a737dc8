import { InvalidOptionError } from '@firebreak/core'

/** Where a hub listens: for frames and for text reports. */
export interface HubAddress {
  readonly sensorUrl: string
  readonly reportsUrl: string
  /** True where nobody between can look at what is sent: it is encrypted, or does not leave the machine. */
  readonly isPrivate: boolean
}

/** The addresses of a hub from what a user writes: `http://host:port`, `https://…`, `ws://…` or `wss://…`. */
export function parseHubUrl(text: string): HubAddress {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw new InvalidOptionError('hubs', text, 'a URL as http://127.0.0.1:7070')
  }
  const isSecure = url.protocol === 'https:' || url.protocol === 'wss:'
  if (!isSecure && url.protocol !== 'http:' && url.protocol !== 'ws:')
    throw new InvalidOptionError('hubs', text, 'an http, https, ws or wss URL')
  const base = `${url.host}${url.pathname.replace(/\/+$/, '')}`
  return {
    sensorUrl: `${isSecure ? 'wss' : 'ws'}://${base}/v1/sensor`,
    reportsUrl: `${isSecure ? 'https' : 'http'}://${base}/v1/reports`,
    isPrivate: isSecure || /^(localhost|127\.[\d.]+|\[::1\])$/.test(url.hostname),
  }
}

/** True where a hub's URL names a NATS server: reports go there, tables still come from a hub. */
export function isNatsUrl(text: string): boolean {
  return /^nats:\/\//.test(text)
}

/** A NATS server from `nats://[user:password@]host[:port]`. */
export function parseNatsUrl(text: string): NatsAddress {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw new InvalidOptionError('hubs', text, 'a URL as nats://127.0.0.1:4222')
  }
  const [user, password] = [url.username, url.password].map(decodeURIComponent) as [string, string]
  const secret = password === '' ? { token: user } : { user, pass: password }
  return { server: url.port === '' ? `${url.hostname}:4222` : url.host, ...(user !== '' && secret) }
}

export interface NatsAddress {
  readonly server: string
  readonly user?: string
  readonly pass?: string
  readonly token?: string
}
