import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { RedisPlace } from '../redis-source/redis-client.ts'
import type { DrillNews, DrillNotes, DrillOrder } from './drill-messages.ts'

type NewsOf<Kind extends DrillNews['kind']> = Extract<DrillNews, { kind: Kind }>

/** The client processes of a drill. */
export class DrillFleet {
  readonly #children: ChildProcess[] = []
  #listeners: ((client: number, news: DrillNews) => void)[] = []
  /** Rejects everything that waits for messages that will not come. */
  readonly #closed = new AbortController()

  /** Starts `count` client processes, assigned to the hubs in turn, and waits until all can reach Redis. */
  static async start(count: number, redis: RedisPlace, hubUrls: readonly string[]): Promise<DrillFleet> {
    const fleet = new DrillFleet()
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    const file = fileURLToPath(new URL(`./drill-client.${extension}`, import.meta.url))
    const execArgv = ['--conditions=firebreak-source', '--disable-warning=ExperimentalWarning']
    // Not an argument: it may hold a password, and others see arguments.
    const env = { ...process.env, FIREBREAK_DRILL_REDIS: JSON.stringify(redis) }
    for (let client = 0; client < count; client++) {
      const args = [hubUrls[client % hubUrls.length]!, `drill-${client}`]
      const child = fork(file, args, { execArgv, env })
      fleet.#children.push(child)
      child.on('message', (news) => {
        for (const listener of fleet.#listeners) listener(client, news as DrillNews)
      })
    }
    try {
      await fleet.all('ready')
      return fleet
    } catch (error) {
      await fleet.close()
      throw error
    }
  }

  get size(): number {
    return this.#children.length
  }

  order(order: DrillOrder): void {
    for (const child of this.#children) if (child.connected) child.send(order)
  }

  /** Resolves when every client has sent a message of a kind; rejects after `timeoutMs` with how many had. */
  all<Kind extends DrillNews['kind']>(kind: Kind, timeoutMs = 20_000): Promise<NewsOf<Kind>[]> {
    return new Promise((resolve, reject) => {
      const heard = new Map<number, NewsOf<Kind>>()
      const { signal } = this.#closed
      const end = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', close)
        this.#listeners = this.#listeners.filter((other) => other !== listener)
      }
      const listener = (client: number, news: DrillNews) => {
        if (news.kind === kind) heard.set(client, news as NewsOf<Kind>)
        if (heard.size < this.#children.length) return
        end()
        resolve([...heard.entries()].sort(([a], [b]) => a - b).map(([, value]) => value))
      }
      const timer = setTimeout(() => {
        end()
        reject(new Error(`${heard.size} of ${this.#children.length} clients were ${kind} within ${timeoutMs} ms`))
      }, timeoutMs)
      const close = () => {
        end()
        reject(new Error('the clients were stopped'))
      }
      if (signal.aborted) return close()
      signal.addEventListener('abort', close)
      this.#listeners.push(listener)
    })
  }

  /** Stops the reads and returns what each client recorded. */
  async notes(): Promise<DrillNotes[]> {
    const notes = this.all('notes')
    this.order({ kind: 'stop' })
    return notes
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await Promise.all(
      this.#children.map((child) => {
        if (child.exitCode !== null || child.signalCode !== null) return undefined
        const ended = new Promise((resolve) => child.on('exit', resolve))
        child.kill('SIGKILL')
        return ended
      }),
    )
  }
}
