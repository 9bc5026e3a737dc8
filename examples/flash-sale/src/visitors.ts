import { Agent, request } from 'node:http'

/** How requests went, since the last `take`. */
export interface VisitorCounts {
  requests: number
  pages: number
  sold: number
  soldOut: number
  bought: number
  limited: number
  refused: number
  failed: number
  latenciesMs: number[]
}

const noCounts = (): VisitorCounts => ({
  requests: 0,
  pages: 0,
  sold: 0,
  soldOut: 0,
  bought: 0,
  limited: 0,
  refused: 0,
  failed: 0,
  latenciesMs: [],
})

/** People, double-clickers and bots that visit a shop over HTTP. */
export class Visitors {
  #counts = noCounts()
  #inFlight = 0
  #next = 0
  readonly #ports: readonly number[]
  readonly #agent: Agent
  readonly #maxInFlight: number

  constructor(ports: readonly number[], maxInFlight = 200) {
    this.#ports = ports
    this.#maxInFlight = maxInFlight
    this.#agent = new Agent({ keepAlive: true, maxSockets: Math.ceil(maxInFlight / ports.length) })
  }

  /** What happened since the last call. */
  take(): VisitorCounts {
    const counts = this.#counts
    this.#counts = noCounts()
    return counts
  }

  get isBusy(): boolean {
    return this.#inFlight >= this.#maxInFlight
  }

  /** Looks at a product. */
  async look(product: string): Promise<void> {
    const status = await this.#call('GET', `/product/${product}`)
    if (status?.code === 200) this.#counts.pages++
  }

  /** Tries to buy. */
  async buy(voucher: string, user: string, answer = 'a person'): Promise<string | undefined> {
    const status = await this.#call('POST', `/buy/${voucher}`, JSON.stringify({ user, answer }))
    if (status === undefined) return undefined
    const body = status.body === '' ? {} : (JSON.parse(status.body) as { code?: string; orderId?: string })
    if (status.code === 201) this.#counts.sold++
    else if (status.code === 429) this.#counts.limited++
    else if (status.code === 403) this.#counts.refused++
    else if (body.code === 'soldout') this.#counts.soldOut++
    else if (body.code === 'bought') this.#counts.bought++
    return body.orderId
  }

  close(): void {
    this.#agent.destroy()
  }

  #call(method: string, path: string, body = ''): Promise<{ code: number; body: string } | undefined> {
    const port = this.#ports[this.#next++ % this.#ports.length]!
    const started = performance.now()
    this.#inFlight++
    this.#counts.requests++
    return new Promise((resolve) => {
      const end = (result: { code: number; body: string } | undefined) => {
        this.#inFlight--
        if (result === undefined) this.#counts.failed++
        else this.#counts.latenciesMs.push(performance.now() - started)
        resolve(result)
      }
      const headers =
        body === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
      const call = request({ host: '127.0.0.1', port, path, method, agent: this.#agent, headers }, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          text += chunk
        })
        response.on('end', () => end({ code: response.statusCode ?? 0, body: text }))
        response.on('error', () => end(undefined))
      })
      call.on('error', () => end(undefined))
      call.end(body)
    })
  }
}

/** The value below which the share `q` of the values lies. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0
}
