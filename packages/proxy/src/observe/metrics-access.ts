import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'

/** Why a request to the metrics port is refused. */
export interface MetricsRefusal {
  readonly status: 401 | 403
  readonly reason: string
}

/**
 * Who may read a proxy's metrics: they name the nodes behind it.
 *
 * No web page has a reason to. A request from one carries its origin (Origin, Sec-Fetch-Site), or comes from a host
 * name that was made to resolve to this address and is sent as Host. On loopback such a name is refused; elsewhere
 * Prometheus may know the proxy by any name, and a token keeps strangers out.
 */
export class MetricsAccess {
  readonly #digest: Buffer | undefined

  constructor(token: string | undefined) {
    this.#digest = token === undefined ? undefined : digestOf(`Bearer ${token}`)
  }

  refusalOf({ headers, socket }: IncomingMessage): MetricsRefusal | undefined {
    const { host, origin, authorization } = headers
    const site = headers['sec-fetch-site']
    if (origin !== undefined || site === 'cross-site' || site === 'same-site') {
      return { status: 403, reason: 'requests of web pages are refused' }
    }
    if (isLoopback(socket.localAddress) && !isOwnName(host)) {
      return { status: 403, reason: `requests for the host ${JSON.stringify(host ?? '')} are refused; use 127.0.0.1` }
    }
    if (this.#digest === undefined || timingSafeEqual(digestOf(authorization ?? ''), this.#digest)) return undefined
    return { status: 401, reason: 'this needs Authorization: Bearer and the token of metricsToken' }
  }
}

/**
 * An address, or a name without a dot: `localhost`, or that of a neighbouring container. No web site has such a name.
 */
function isOwnName(host: string | undefined): boolean {
  const name = host?.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1') ?? ''
  return isIP(name) !== 0 || /^[a-z\d_-]+$/i.test(name)
}

function isLoopback(address: string | undefined): boolean {
  return address === '::1' || /^(::ffff:)?127\./.test(address ?? '')
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
