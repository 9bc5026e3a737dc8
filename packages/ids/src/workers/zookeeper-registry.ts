import {
  isZooKeeperError,
  ZooKeeperClient,
  type ZooKeeperClientOptions,
  type ZooKeeperOperation,
} from '@firebreak/centre'
import type { NodeAddress } from '../address/node-address.ts'
import { registryDown } from '../errors.ts'
import { workerCount } from '../snowflake/layout.ts'
import { freeWorkerId, RegistryMember, type StoredRecord, toWorkers } from './registry-member.ts'
import type {
  ClaimOptions,
  RegisteredWorker,
  RegistryOptions,
  WorkerRecord,
  WorkerRegistry,
} from './worker-registry.ts'

/** Options for registering nodes in ZooKeeper. */
export interface ZooKeeperRegistryOptions extends RegistryOptions, Omit<ZooKeeperClientOptions, 'downError'> {}

/**
 * Leaf's tree:
 *
 *     ROOT/leaf_forever/10.0.0.7:8080-0000000003   persistent, sequential: worker id 3
 *     ROOT/leaf_temporary/10.0.0.7:8080            ephemeral: the live nodes
 *
 * The worker id is the number at the end of the name, always. Once ZooKeeper's counter passes 1023, a number is
 * recycled by one transaction that deletes the old node as it was read and creates a node for the new address with the
 * same number. A number whose node was deleted by hand is free. Both also change `leaf_forever` itself at a version, so
 * that if two nodes choose the same number only one succeeds.
 */
export class ZooKeeperRegistry implements WorkerRegistry {
  readonly kind = 'zookeeper'
  readonly #member: RegistryMember
  readonly #client: ZooKeeperClient
  readonly #forever: string
  readonly #temporary: string
  readonly #paths = new Map<number, string>()

  constructor(options: ZooKeeperRegistryOptions) {
    this.#member = new RegistryMember(options)
    const root = (options.root ?? '').replace(/\/+$/, '')
    this.#forever = `${root}/leaf_forever`
    this.#temporary = `${root}/leaf_temporary`
    this.#client = new ZooKeeperClient({
      ...options,
      sessionTimeoutMs: this.#member.sessionTimeoutMs,
      downError: registryDown,
    })
  }

  get owner(): string {
    return this.#member.owner
  }

  async claim({ waitMs, predecessor }: ClaimOptions): Promise<void> {
    await this.#client.connect()
    const path = `${this.#temporary}/${this.#member.name}`
    await this.#member.claim(waitMs, async () => {
      for (;;) {
        // Reads first: this runs every few seconds, and a failing create costs the ensemble a write.
        const found = await this.#client.getData(path)
        if (found === undefined) {
          if (await this.#createClaim(path)) return undefined
          continue
        }
        const owner = ownerOf(found.data)
        if (owner === this.owner && found.stat.ephemeralOwner === this.#client.sessionId) return undefined
        if (owner !== this.owner && (predecessor === undefined || owner !== predecessor)) return owner
        // It belongs to an expired session of ours or to a dead process, and would disappear by itself later.
        await this.#client.delete(path, found.stat.version).catch(() => {})
      }
    })
  }

  /** False if another node was faster, or the tree was missing and has now been created. */
  async #createClaim(path: string): Promise<boolean> {
    const { ip, port } = this.#member.address
    try {
      await this.#client.create(path, JSON.stringify({ ip, port, owner: this.owner }), 'ephemeral')
      return true
    } catch (error) {
      if (isZooKeeperError(error, 'NO_NODE')) {
        await this.#client.ensure(this.#forever)
        await this.#client.ensure(this.#temporary)
      } else if (!isZooKeeperError(error, 'NODE_EXISTS')) throw error
      return false
    }
  }

  async own(): Promise<RegisteredWorker[]> {
    const names = await this.#client.getChildren(this.#forever)
    return this.#read(names.filter((name) => name.startsWith(`${this.#member.name}-`)))
  }

  async peers(): Promise<NodeAddress[]> {
    return this.#member.peers(await this.#client.getChildren(this.#temporary))
  }

  async fleet(): Promise<RegisteredWorker[]> {
    const live = await this.#client.getChildren(this.#temporary)
    const others = live.filter((name) => name !== this.#member.name)
    const names = await this.#client.getChildren(this.#forever)
    return this.#read(names.filter((name) => others.some((address) => name.startsWith(`${address}-`))))
  }

  async register(record: WorkerRecord): Promise<number> {
    const created = await this.#client.create(
      `${this.#forever}/${this.#member.name}-`,
      JSON.stringify(record),
      'persistent-sequential',
    )
    const workerId = numberOf(created)
    if (workerId < workerCount) {
      this.#paths.set(workerId, created)
      return workerId
    }
    await this.#client.delete(created)
    return this.#recycle(record)
  }

  async adopt(worker: RegisteredWorker, record: WorkerRecord): Promise<void> {
    await this.#write(worker.workerId, record, Number(worker.version))
  }

  async report(workerId: number, record: WorkerRecord): Promise<void> {
    const found = await this.#client.getData(this.#pathOf(workerId))
    this.#member.checkOwned(workerId, found?.data)
    await this.#write(workerId, record, found!.stat.version)
  }

  async close(): Promise<void> {
    await this.#client.close()
  }

  async #write(workerId: number, record: WorkerRecord, version: number): Promise<void> {
    try {
      await this.#client.setData(this.#pathOf(workerId), JSON.stringify(record), version)
    } catch (error) {
      if (isZooKeeperError(error, 'NO_NODE') || isZooKeeperError(error, 'BAD_VERSION')) {
        throw this.#member.lost(workerId)
      }
      throw error
    }
  }

  #pathOf(workerId: number): string {
    return this.#paths.get(workerId) ?? `${this.#forever}/${nodeName(this.#member.name, workerId)}`
  }

  async #read(names: readonly string[]): Promise<RegisteredWorker[]> {
    const found = await Promise.all(
      names.map(async (name): Promise<StoredRecord[]> => {
        const workerId = numberOf(name)
        const node = workerId < workerCount ? await this.#client.getData(`${this.#forever}/${name}`) : undefined
        return node === undefined ? [] : [{ workerId, text: node.data, version: String(node.stat.version) }]
      }),
    )
    return toWorkers(found.flat()).sort((a, b) => a.workerId - b.workerId)
  }

  /** Takes a number that was freed by hand, or that of a node that has long been silent. */
  async #recycle(record: WorkerRecord): Promise<number> {
    for (;;) {
      const parent = await this.#client.exists(this.#forever)
      const names = await this.#client.getChildren(this.#forever)
      const taken = new Map(names.map((name) => [numberOf(name), name]))
      const steps: ZooKeeperOperation[] = [{ kind: 'setData', path: this.#forever, data: '', version: parent!.version }]
      let workerId = freeWorkerId(taken.keys())
      if (workerId === undefined) {
        const live = await this.#client.getChildren(this.#temporary)
        const old = this.#member.pickRecyclable(await this.#read(names), live, record.timestamp)
        workerId = old.workerId
        const path = `${this.#forever}/${taken.get(workerId)}`
        steps.push({ kind: 'delete', path, version: Number(old.version) })
      }
      const path = `${this.#forever}/${nodeName(this.#member.name, workerId)}`
      steps.push({ kind: 'create', path, data: JSON.stringify(record), mode: 'persistent' })
      try {
        await this.#client.multi(steps)
        this.#paths.set(workerId, path)
        return workerId
      } catch (error) {
        // Another node was faster, or the old node came back: check again.
        const wasLate = ['BAD_VERSION', 'NO_NODE', 'NODE_EXISTS'].some((name) => isZooKeeperError(error, name))
        if (!wasLate) throw error
      }
    }
  }
}

function nodeName(address: string, workerId: number): string {
  return `${address}-${String(workerId).padStart(10, '0')}`
}

/** The sequence number at the end of a node's name; more than any worker id if there is none. */
function numberOf(path: string): number {
  return Number(path.match(/-(\d{10})$/)?.[1] ?? Number.POSITIVE_INFINITY)
}

function ownerOf(data: string): string {
  try {
    return String((JSON.parse(data) as { owner?: unknown }).owner ?? '')
  } catch {
    return ''
  }
}
