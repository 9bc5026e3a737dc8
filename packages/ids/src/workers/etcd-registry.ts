import { checkAddress, formatAddress, type NodeAddress, parseAddress } from '../address/node-address.ts'
import { EtcdClient, type EtcdClientOptions, type EtcdEntry } from '../etcd/etcd-client.ts'
import { workerCount } from '../snowflake/layout.ts'
import {
  addressTaken,
  type ClaimOptions,
  defaultRecycleAfterMs,
  defaultSessionTimeoutMs,
  newOwner,
  parseRecord,
  pickRecyclable,
  type RegisteredWorker,
  type RegistryOptions,
  type WorkerRecord,
  type WorkerRegistry,
  workerLost,
  workersFull,
} from './worker-registry.ts'

/** How nodes register in etcd. */
export interface EtcdRegistryOptions extends RegistryOptions, EtcdClientOptions {}

/**
 * The registry in etcd: a key per worker id, so that two nodes cannot take one, and a key per live address on a lease.
 *
 *     ROOT/leaf_forever/0000000003          {"ip","port","timestamp","mark",…}
 *     ROOT/leaf_temporary/10.0.0.7:8080     the owner's name, on a lease that each `claim` renews
 */
export class EtcdRegistry implements WorkerRegistry {
  readonly kind = 'etcd'
  readonly owner: string = newOwner()
  readonly #client: EtcdClient
  readonly #address: NodeAddress
  readonly #forever: string
  readonly #temporary: string
  readonly #sessionTimeoutMs: number
  readonly #recycleAfterMs: number
  #lease: string | undefined

  constructor(options: EtcdRegistryOptions) {
    this.#address = checkAddress(options.address)
    const root = (options.root ?? '').replace(/\/+$/, '')
    this.#forever = `${root}/leaf_forever/`
    this.#temporary = `${root}/leaf_temporary/`
    this.#sessionTimeoutMs = options.sessionTimeoutMs ?? defaultSessionTimeoutMs
    this.#recycleAfterMs = options.recycleAfterMs ?? defaultRecycleAfterMs
    this.#client = new EtcdClient(options)
  }

  async claim({ waitMs, predecessor }: ClaimOptions): Promise<void> {
    const key = this.#temporary + formatAddress(this.#address)
    const deadline = performance.now() + waitMs
    for (;;) {
      // Renewed in each round: a wait for another's claim may outlast our own lease.
      if (this.#lease !== undefined && !(await this.#client.keepAlive(this.#lease))) this.#lease = undefined
      this.#lease ??= await this.#client.grantLease(this.#sessionTimeoutMs)
      const found = await this.#client.get(key)
      if (found?.value === this.owner) return
      if (found !== undefined && found.value !== predecessor) {
        if (performance.now() >= deadline) throw addressTaken(this.#address, found.value)
        await new Promise((resolve) => setTimeout(resolve, 50))
        continue
      }
      if (await this.#client.putIf(key, this.owner, found?.revision ?? '0', this.#lease)) return
    }
  }

  async own(): Promise<RegisteredWorker[]> {
    const name = formatAddress(this.#address)
    return toWorkers(await this.#client.list(this.#forever)).filter(({ record }) => formatAddress(record) === name)
  }

  async peers(): Promise<NodeAddress[]> {
    const name = formatAddress(this.#address)
    return (await this.#live()).filter((address) => address !== name).flatMap((address) => parseAddress(address) ?? [])
  }

  async register(record: WorkerRecord): Promise<number> {
    const value = JSON.stringify(record)
    for (;;) {
      const entries = await this.#client.list(this.#forever)
      const taken = new Set(entries.map(({ key }) => numberOf(key)))
      const free = Array.from({ length: workerCount }, (_, index) => index).find((index) => !taken.has(index))
      if (free !== undefined) {
        if (await this.#client.putIf(this.#keyOf(free), value, '0')) return free
        continue
      }
      const old = pickRecyclable(toWorkers(entries), await this.#live(), record.timestamp, this.#recycleAfterMs)
      if (old === undefined) throw workersFull(this.#recycleAfterMs)
      if (await this.#client.putIf(this.#keyOf(old.workerId), value, old.version)) return old.workerId
    }
  }

  async adopt(worker: RegisteredWorker, record: WorkerRecord): Promise<void> {
    await this.#write(worker.workerId, record, worker.version)
  }

  async report(workerId: number, record: WorkerRecord): Promise<void> {
    const found = await this.#client.get(this.#keyOf(workerId))
    if (found === undefined || parseRecord(found.value)?.owner !== this.owner) throw workerLost(workerId, this.#address)
    await this.#write(workerId, record, found.revision)
  }

  async close(): Promise<void> {
    const lease = this.#lease
    this.#lease = undefined
    if (lease !== undefined) await this.#client.revokeLease(lease).catch(() => {})
  }

  async #write(workerId: number, record: WorkerRecord, revision: string): Promise<void> {
    const wasWritten = await this.#client.putIf(this.#keyOf(workerId), JSON.stringify(record), revision)
    if (!wasWritten) throw workerLost(workerId, this.#address)
  }

  async #live(): Promise<string[]> {
    return (await this.#client.list(this.#temporary)).map(({ key }) => key.slice(this.#temporary.length))
  }

  #keyOf(workerId: number): string {
    return this.#forever + String(workerId).padStart(10, '0')
  }
}

function numberOf(key: string): number {
  return Number(key.slice(key.lastIndexOf('/') + 1))
}

function toWorkers(entries: readonly EtcdEntry[]): RegisteredWorker[] {
  return entries.flatMap(({ key, value, revision }) => {
    const record = parseRecord(value)
    const workerId = numberOf(key)
    return record === undefined || !(workerId < workerCount) ? [] : [{ workerId, record, version: revision }]
  })
}
