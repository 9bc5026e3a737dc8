import { InvalidOptionError } from '@firebreak/core'

/** Where a hub listens: for frames and for text reports. */
export interface HubAddress {
  readonly sensorUrl: string
  readonly reportsUrl: string
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
  }
}
