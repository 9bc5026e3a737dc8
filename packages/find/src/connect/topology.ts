import { readClusterSlots } from '@firebreak/core/commands'
import { addressOf, type RedisTarget, type RespClient, serverModeOf } from '@firebreak/core/resp'
import { FindError } from '../errors.ts'
import { openServer } from './open-server.ts'
import { infoFields, list, text } from './replies.ts'

/** One server of a deployment. */
export interface ServerNode {
  readonly address: string
  readonly target: RedisTarget
  readonly role: 'master' | 'replica'
  /** In a cluster: the first and last slot of each range that it serves. */
  readonly slots?: readonly (readonly [number, number])[]
  /** For a replica: its master's address. */
  readonly masterAddress?: string
}

/** How the servers behind an address relate to each other. */
export interface Topology {
  readonly kind: 'standalone' | 'cluster' | 'sentinel'
  readonly masters: readonly ServerNode[]
  /** Replicas in sync, by their master's address. */
  readonly replicas: ReadonlyMap<string, readonly ServerNode[]>
}

/** How to look up a deployment. */
export interface DiscoverOptions {
  /** The master's name, if the target is a Sentinel. @default the only one that it knows */
  readonly sentinelMaster?: string
  /** The Sentinels' own user and password, if any. */
  readonly sentinelPassword?: string
}

/** Finds out what a target is (a single server, a cluster, a Sentinel) and which servers belong to it. */
export async function discover(target: RedisTarget, options: DiscoverOptions = {}): Promise<Topology> {
  const first = await openAny(target, options)
  try {
    const info = infoFields(await first.send(['INFO', 'server']).catch(() => ''))
    const mode = serverModeOf(info)
    if (mode === 'sentinel') return await discoverSentinel(first, target, options)
    if (mode === 'cluster') return await discoverCluster(first, target)
    return await standalone(first, target, mode)
  } finally {
    first.close()
  }
}

/** A Sentinel often has no password even if its servers do. */
async function openAny(target: RedisTarget, options: DiscoverOptions): Promise<RespClient> {
  try {
    return await openServer(target)
  } catch (error) {
    const isRefused = error instanceof Error && /AUTH|WRONGPASS/.test(error.message)
    if (!isRefused || (options.sentinelMaster === undefined && options.sentinelPassword === undefined)) throw error
    const { username: _username, password: _password, database: _database, ...rest } = target
    const { sentinelPassword: password } = options
    return openServer(password === undefined ? rest : { ...rest, password })
  }
}

async function standalone(
  connection: RespClient,
  target: RedisTarget,
  kind: 'standalone' | 'sentinel',
): Promise<Topology> {
  const address = addressOf(target)
  const info = infoFields(await connection.send(['INFO', 'replication']).catch(() => ''))
  const replicas: ServerNode[] = []
  for (const [name, value] of info) {
    if (!/^slave\d+$/.test(name)) continue
    const parts = new Map(value.split(',').map((part) => part.split('=', 2) as [string, string]))
    if (parts.get('state') !== 'online') continue
    const replica = moved(target, parts.get('ip')!, Number(parts.get('port')))
    replicas.push({ address: addressOf(replica), target: replica, role: 'replica', masterAddress: address })
  }
  const role = info.get('role') === 'slave' ? 'replica' : 'master'
  // A server that was named explicitly is read even if it is a replica.
  return { kind, masters: [{ address, target, role }], replicas: new Map([[address, replicas]]) }
}

async function discoverSentinel(
  sentinel: RespClient,
  target: RedisTarget,
  options: DiscoverOptions,
): Promise<Topology> {
  let name = options.sentinelMaster
  if (name === undefined) {
    const known = list(await sentinel.send(['SENTINEL', 'MASTERS'])).map((master) => text(list(master)[1]))
    if (known.length !== 1) {
      throw new FindError(
        'FB_FIND_TOPOLOGY',
        `the Sentinel at ${sentinel.address} watches ${known.length} masters (${known.join(', ')}): name one`,
      )
    }
    name = known[0]!
  }
  const reply = await sentinel.send(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name])
  if (reply === null) {
    throw new FindError('FB_FIND_TOPOLOGY', `the Sentinel at ${sentinel.address} does not know a master "${name}"`)
  }
  const [host, port] = list(reply)
  const master = moved(target, text(host), Number(text(port)))
  const connection = await openServer(master)
  try {
    return await standalone(connection, master, 'sentinel')
  } finally {
    connection.close()
  }
}

async function discoverCluster(connection: RespClient, target: RedisTarget): Promise<Topology> {
  const masters = new Map<string, { node: RedisTarget; slots: [number, number][] }>()
  const replicas = new Map<string, ServerNode[]>()
  const { database: _database, ...base } = target
  const reply = await connection.send(['CLUSTER', 'SLOTS'])
  for (const range of readClusterSlots(reply, base.host ?? '127.0.0.1')) {
    const node = moved(base, range.master.host, range.master.port)
    const address = addressOf(node)
    const known = masters.get(address) ?? { node, slots: [] }
    known.slots.push([range.first, range.last])
    masters.set(address, known)
    replicas.set(
      address,
      range.replicas.map(({ host, port }) => {
        const replica = moved(base, host, port)
        return { address: addressOf(replica), target: replica, role: 'replica', masterAddress: address }
      }),
    )
  }
  if (masters.size === 0) {
    throw new FindError('FB_FIND_TOPOLOGY', `${connection.address} is a cluster node, but no slots are assigned`)
  }
  return {
    kind: 'cluster',
    masters: [...masters].map(([address, { node, slots }]) => ({
      address,
      target: node,
      role: 'master',
      slots: slots.sort((a, b) => a[0] - b[0]),
    })),
    replicas,
  }
}

function moved(target: RedisTarget, host: string, port: number): RedisTarget {
  const { socketPath: _socketPath, ...rest } = target
  return { ...rest, host, port }
}

/**
 * One server to read for each master: its first replica that answers if replicas are preferred, otherwise the master.
 */
export async function readingConnections(
  topology: Topology,
  prefersReplicas: boolean,
): Promise<{ node: ServerNode; connection: RespClient }[]> {
  return Promise.all(
    topology.masters.map(async (master) => {
      const candidates = [...(prefersReplicas ? (topology.replicas.get(master.address) ?? []) : []), master]
      let failure: unknown
      for (const node of candidates) {
        try {
          const connection = await openServer(node.target)
          if (node.role === 'replica' && topology.kind === 'cluster') await connection.send(['READONLY'])
          return {
            node: node === master ? master : { ...node, ...(master.slots && { slots: master.slots }) },
            connection,
          }
        } catch (error) {
          failure = error
        }
      }
      throw failure
    }),
  )
}
