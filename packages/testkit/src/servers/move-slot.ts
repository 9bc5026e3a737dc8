import type { RedisCluster, RedisServer } from './redis-server.ts'

/** Moves a slot with its keys from one node of a cluster to another, as every tool for it does. */
export async function moveSlot(cluster: RedisCluster, slot: number, from: RedisServer, to: RedisServer): Promise<void> {
  const [fromId, toId] = [await from.cli('CLUSTER', 'MYID'), await to.cli('CLUSTER', 'MYID')]
  const set = (node: RedisServer, ...words: string[]) => node.cli('CLUSTER', 'SETSLOT', String(slot), ...words)
  await set(to, 'IMPORTING', fromId)
  await set(from, 'MIGRATING', toId)
  const names = () => from.cli('CLUSTER', 'GETKEYSINSLOT', String(slot), '100')
  for (let list = await names(); list !== ''; list = await names()) {
    for (const name of list.split('\n'))
      await from.cli('MIGRATE', to.host, String(to.port), name, '0', '5000', 'REPLACE')
  }
  for (const node of [to, from, ...cluster.nodes]) await set(node, 'NODE', toId)
}
