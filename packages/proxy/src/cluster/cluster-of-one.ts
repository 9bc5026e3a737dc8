import { slotCount } from '@firebreak/core/commands'
import type { RespValue } from '@firebreak/core/resp'

/** The proxy as the only node of a cluster, for clients that insist on one. */
export interface OnlyNode {
  readonly id: string
  readonly host: string
  readonly port: number
}

/** The reply to CLUSTER SLOTS, SHARDS, NODES, INFO, MYID and REPLICAS of a cluster whose only node is the proxy. */
export function clusterOfOne(name: string, { id, host, port }: OnlyNode): RespValue {
  const text = (value: string) => Buffer.from(value)
  switch (name) {
    case 'CLUSTER SLOTS':
      return [[0, slotCount - 1, [text(host), port, text(id), []]]]
    case 'CLUSTER SHARDS': {
      const node = [text('id'), text(id), text('port'), port, text('ip'), text(host), text('endpoint'), text(host)]
      node.push(text('role'), text('master'), text('replication-offset'), 0, text('health'), text('online'))
      return [[text('slots'), [0, slotCount - 1], text('nodes'), [node]]]
    }
    case 'CLUSTER NODES':
      return text(`${id} ${host}:${port}@${port + 10_000} myself,master - 0 0 1 connected 0-${slotCount - 1}\n`)
    case 'CLUSTER MYID':
      return text(id)
    case 'CLUSTER INFO':
      return text(
        [
          'cluster_enabled:1',
          'cluster_state:ok',
          `cluster_slots_assigned:${slotCount}`,
          `cluster_slots_ok:${slotCount}`,
          'cluster_slots_pfail:0',
          'cluster_slots_fail:0',
          'cluster_known_nodes:1',
          'cluster_size:1',
          'cluster_current_epoch:1',
          'cluster_my_epoch:1',
          '',
        ].join('\r\n'),
      )
    default:
      return []
  }
}
