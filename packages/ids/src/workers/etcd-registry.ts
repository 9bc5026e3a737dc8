import { EtcdClient, type EtcdClientOptions } from '@firebreak/centre'
import type { NodeAddress } from '../address/node-address.ts'
import { registryDown } from '../errors.ts'
import { RegistryMember, type StoredRecord } from './registry-member.ts'
import type {
  ClaimOptions,
  RegisteredWorker,
  RegistryOptions,
  WorkerRecord,
  WorkerRegistry,
} from './worker-registry.ts'

/** Options for registering nodes in etcd. */
export interface EtcdRegistryOptions extends RegistryOptions, Omit<EtcdClientOptions, 'downError'> {}

/**
 * The registry in etcd: a key per worker id, so that two nodes cannot take one, and a key per live address on a lease.
 *
 *     ROOT/leaf_forever/0000000003          {"ip","port","timestamp","mark",…}
 *     ROOT/leaf_temporary/10.0.0.7:8080     the owner's name, on a lease that each `claim` renews
 */
export class EtcdRegistry implements WorkerRegistry {
  readonly kind = 'etcd'
  readonly #member: RegistryMember
  readonly #client: EtcdClient
  readonly #forever: string
  readonly #temporary: string
  #lease: string | undefined

  constructor(options: EtcdRegistryOptions) {
    this.#member = new RegistryMember(options)
    const root = (options.root ?? '').replace(/\/+$/, '')
    this.#forever = `${root}/leaf_forever/`
    this.#temporary = `${root}/leaf_temporary/`
    this.#client = new EtcdClient({ ...options, downError: registryDown })
  }

  get owner(): string {
    return this.#member.owner
  }

  claim({ waitMs, predecessor }: ClaimOptions): Promise<void> {
    const key = this.#temporary + this.#member.name
    return this.#member.claim(waitMs, async () => {
      for (;;) {
        // Renewed in each round: a wait for another's claim may outlast our own lease.
        if (this.#lease !== undefined && !(await this.#client.keepAlive(this.#lease))) this.#lease = undefined
        this.#lease ??= await this.#client.grantLease(this.#member.sessionTimeoutMs)
        const found = await this.#client.get(key)
        if (found?.value === this.owner) return undefined
        if (found !== undefined && found.value !== predecessor) return found.value
        if (await this.#client.putIf(key, this.owner, found?.revision ?? '0', this.#lease)) return undefined
      }
    })
  }

  async own(): Promise<RegisteredWorker[]> {
    return this.#member.own(await this.#all())
  }

  async peers(): Promise<NodeAddress[]> {
    return this.#member.peers(await this.#live())
  }

  async fleet(): Promise<RegisteredWorker[]> {
    return this.#member.fleet(await this.#all(), await this.#live())
  }

  register(record: WorkerRecord): Promise<number> {
    const table = {
      all: () => this.#all(),
      live: () => this.#live(),
      write: (workerId: number, value: WorkerRecord, version = '0') => this.#putIf(workerId, value, version),
    }
    return this.#member.register(table, record)
  }

  async adopt(worker: RegisteredWorker, record: WorkerRecord): Promise<void> {
    if (!(await this.#putIf(worker.workerId, record, worker.version))) throw this.#member.lost(worker.workerId)
  }

  async report(workerId: number, record: WorkerRecord): Promise<void> {
    const found = await this.#client.get(this.#keyOf(workerId))
    this.#member.checkOwned(workerId, found?.value)
    if (!(await this.#putIf(workerId, record, found!.revision))) throw this.#member.lost(workerId)
  }

  async close(): Promise<void> {
    const lease = this.#lease
    this.#lease = undefined
    if (lease !== undefined) await this.#client.revokeLease(lease).catch(() => {})
    this.#client.close()
  }

  #putIf(workerId: number, record: WorkerRecord, revision: string): Promise<boolean> {
    return this.#client.putIf(this.#keyOf(workerId), JSON.stringify(record), revision)
  }

  async #all(): Promise<StoredRecord[]> {
    const entries = await this.#client.list(this.#forever)
    return entries.map(({ key, value, revision }) => ({
      workerId: Number(key.slice(this.#forever.length)),
      text: value,
      version: revision,
    }))
  }

  async #live(): Promise<string[]> {
    return (await this.#client.list(this.#temporary)).map(({ key }) => key.slice(this.#temporary.length))
  }

  #keyOf(workerId: number): string {
    return this.#forever + String(workerId).padStart(10, '0')
  }
}
