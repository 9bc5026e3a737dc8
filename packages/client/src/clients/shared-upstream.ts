import type { OpenPipe } from '@firebreak/core/resp'
import type { Credentials, Upstream } from '@firebreak/shield'
import type { ClientIdentity } from './client-identity.ts'
import type { OpenClients } from './open-clients.ts'

/** How long cached replies are served without asking Redis whether the user may still read them. */
const rightsMs = 5000

/** The Redis behind several clients: whichever of them is open says where the keys are. */
export class SharedUpstream implements Upstream {
  readonly isCluster: boolean
  readonly rightsMs = rightsMs
  readonly #clients: OpenClients
  readonly #identity: ClientIdentity | undefined

  /** `identity`: who its connections read as, even if the clients' options change later. */
  constructor(isCluster: boolean, clients: OpenClients, identity?: ClientIdentity) {
    this.isCluster = isCluster
    this.#clients = clients
    this.#identity = identity
  }

  nodeOf(slot: number): string | undefined {
    return this.#clients.get()?.upstream.nodeOf(slot)
  }

  connect(node: string): OpenPipe {
    const client = this.#clients.get()
    if (client === undefined) throw new Error(`no client of ${node} is left`)
    return client.upstream.connect(node)
  }

  credentials(): Credentials {
    if (this.#identity === undefined || this.#identity.provider !== undefined) {
      return this.#clients.get()?.upstream.credentials() ?? {}
    }
    const { username, password } = this.#identity
    return { ...(username && { username }), ...(password && { password }) }
  }

  refresh(): void {
    this.#clients.get()?.upstream.refresh?.()
  }
}
