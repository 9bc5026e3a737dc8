import { InvalidOptionError, isKafkaUrl, parseKafkaUrl } from '@firebreak/core'

/** Where a hub listens: for frames and for text reports. */
export interface HubAddress {
  /** As users write it, without a user or a password. */
  readonly url: string
  readonly sensorUrl: string
  readonly reportsUrl: string
  /** True if nobody in between can read what is sent: it is encrypted, or does not leave the machine. */
  readonly isPrivate: boolean
}

/** Parses a hub's address as users write it: `http://host:port`, `https://…`, `ws://…` or `wss://…`. */
export function parseHubUrl(text: string): HubAddress {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw new InvalidOptionError('hubs', text, 'a URL such as http://127.0.0.1:7070')
  }
  const isSecure = url.protocol === 'https:' || url.protocol === 'wss:'
  if (!isSecure && url.protocol !== 'http:' && url.protocol !== 'ws:')
    throw new InvalidOptionError('hubs', text, 'an http, https, ws or wss URL')
  const base = `${url.host}${url.pathname.replace(/\/+$/, '')}`
  return {
    url: `${isSecure ? 'https' : 'http'}://${base}`,
    sensorUrl: `${isSecure ? 'wss' : 'ws'}://${base}/v1/sensor`,
    reportsUrl: `${isSecure ? 'https' : 'http'}://${base}/v1/reports`,
    isPrivate: isSecure || /^(localhost|127\.[\d.]+|\[::1\])$/.test(url.hostname),
  }
}

/** True if a hub's URL names a NATS server: reports go there, tables still come from a hub. */
export function isNatsUrl(text: string): boolean {
  return /^(nats|tls):\/\//.test(text)
}

/** True if a hub's URL names a stream for reports; tables still come from a hub. */
export function isStreamUrl(text: string): boolean {
  return isNatsUrl(text) || isKafkaUrl(text)
}

/** Throws if one of the URLs is unusable, or two streams are named. */
export function checkHubUrls(urls: readonly string[]): void {
  // A string has a length and letters too.
  if (!Array.isArray(urls)) throw new InvalidOptionError('hubs', urls, "an array, such as ['http://127.0.0.1:7070']")
  for (const url of urls) {
    if (isKafkaUrl(url)) parseKafkaUrl(url, 'hubs')
    else if (isNatsUrl(url)) parseNatsUrl(url)
    else parseHubUrl(url)
  }
  const kafkas = urls.filter(isKafkaUrl).length
  if (kafkas > 1 || (kafkas === 1 && urls.some(isNatsUrl)))
    throw new InvalidOptionError('hubs', 'several streams', 'one kafka:// URL (with all its brokers), or nats:// URLs')
}

/** Parses `nats://[user:password@]host[:port]`; with `tls://` the server must use TLS with a valid certificate. */
export function parseNatsUrl(text: string): NatsAddress {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw new InvalidOptionError('hubs', text, 'a URL such as nats://127.0.0.1:4222')
  }
  const [user, password] = [url.username, url.password].map(decodeURIComponent) as [string, string]
  const secret = password === '' ? { token: user } : { user, pass: password }
  const server = url.port === '' ? `${url.hostname}:4222` : url.host
  // The client ignores the scheme: without the option it would use plain text with a server that does not require TLS.
  return { server, ...(user !== '' && secret), ...(url.protocol === 'tls:' && { tls: {} }) }
}

export interface NatsAddress {
  readonly server: string
  readonly user?: string
  readonly pass?: string
  readonly token?: string
  /** Uses TLS or does not connect. */
  readonly tls?: object
}
