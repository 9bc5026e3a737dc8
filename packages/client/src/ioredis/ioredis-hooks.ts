import type { Shield } from '@firebreak/shield'
import type { Membership } from '../clients/cluster-clients.ts'
import { ClusterNodeHooks } from './cluster-node-hooks.ts'
import { GetMethods } from './get-methods.ts'
import type { IoredisClient } from './ioredis-client.ts'
import { IoredisConnection } from './ioredis-connection.ts'
import { SendHook } from './send-hook.ts'

/** The hooks on one ioredis client: the send path for completeness, two methods for speed. */
export class IoredisHooks {
  readonly #connection: IoredisConnection
  readonly #shield: Shield
  readonly #methods: GetMethods
  readonly #send: SendHook
  readonly #nodes: ClusterNodeHooks | undefined

  constructor(client: IoredisClient, shield: Shield, membership: Membership) {
    this.#connection = new IoredisConnection(client, membership)
    this.#shield = shield
    this.#methods = new GetMethods(this.#connection, shield)
    this.#send = new SendHook(this.#connection, shield)
    this.#nodes = client.isCluster === true ? new ClusterNodeHooks(client, shield, membership) : undefined
  }

  /** Installs the hooks; the returned function removes them. */
  install(): () => void {
    const { client } = this.#connection
    const onClose = this.#shield.trouble.guarded(() => this.#connection.lost())
    const uninstalls = [this.#send.install(), this.#methods.install()]
    client.on('close', onClose)
    if (this.#nodes !== undefined) uninstalls.push(this.#nodes.follow(() => this.#connection.identify()))
    return () => {
      for (const uninstall of uninstalls) uninstall()
      client.off('close', onClose)
      this.#connection.end()
    }
  }

  /** The value of a hot string key if it is currently in memory; undefined means that a normal read is needed. */
  peek(key: string): string | null | undefined {
    return this.#methods.peek(key)
  }
}
