import type { Shield } from '@firebreak/shield'
import type { Membership } from '../clients/cluster-clients.ts'
import type { IoredisClient } from './ioredis-client.ts'
import { IoredisConnection } from './ioredis-connection.ts'
import { SendHook } from './send-hook.ts'

/**
 * The connections of an ioredis cluster to its nodes. Applications get them from `cluster.nodes()`, for example to scan
 * each node for keys. Commands sent that way are counted, guarded and limited, and replies omit our copies, but the
 * node always answers: only it knows which keys it has.
 */
export class ClusterNodeHooks {
  readonly #cluster: IoredisClient
  readonly #shield: Shield
  readonly #membership: Membership
  readonly #hooked = new Map<IoredisClient, () => void>()

  constructor(cluster: IoredisClient, shield: Shield, membership: Membership) {
    this.#cluster = cluster
    this.#shield = shield
    this.#membership = membership
  }

  /**
   * Hooks every node, current and future; `onChange` is called when the nodes change. The returned function undoes
   * this.
   */
  follow(onChange: () => void): () => void {
    const cluster = this.#cluster
    const { trouble } = this.#shield
    const onNode = trouble.guarded((node: IoredisClient) => {
      this.#hook(node)
      onChange()
    })
    const onNodeGone = trouble.guarded((node: IoredisClient) => {
      this.#unhook(node)
      onChange()
    })
    for (const node of cluster.nodes?.('all') ?? []) this.#hook(node)
    cluster.on('+node', onNode)
    cluster.on('-node', onNodeGone)
    return () => {
      cluster.off('+node', onNode)
      cluster.off('-node', onNodeGone)
      for (const node of [...this.#hooked.keys()]) this.#unhook(node)
    }
  }

  #hook(node: IoredisClient): void {
    if (this.#hooked.has(node)) return
    const connection = new IoredisConnection(node, this.#membership, this.#cluster)
    const uninstall = new SendHook(connection, this.#shield).install()
    const onClose = this.#shield.trouble.guarded(() => connection.lost())
    node.on('close', onClose)
    this.#hooked.set(node, () => {
      uninstall()
      node.off('close', onClose)
      connection.end()
    })
  }

  #unhook(node: IoredisClient): void {
    this.#hooked.get(node)?.()
    this.#hooked.delete(node)
  }
}
