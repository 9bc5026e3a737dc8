import { freePort } from '../net/free-port.ts'
import type { GuardedChild } from '../process/child.ts'
import { waitFor } from '../time/wait-for.ts'

/** How a real server is brought up. */
export interface ServerStart {
  /** For the sentences of errors. */
  readonly name: string
  /** A fixed port, for a restart on the same one. */
  readonly port: number | undefined
  launch(port: number): GuardedChild
  /** True once the server answers a request, not only a connection. */
  answers(port: number): Promise<boolean>
  /** What the server prints when the port is taken, or when its own crashed predecessor still holds something. */
  readonly mayRetry: RegExp
}

/** A server that answers on its port. */
export interface StartedServer {
  readonly port: number
  readonly child: GuardedChild
}

/** Launches a server and waits until it answers. */
export async function startServer(start: ServerStart): Promise<StartedServer> {
  // Another process may take the free port between our check and the server's bind: then pick another.
  for (let attempt = 0; ; attempt++) {
    const port = start.port ?? (await freePort())
    const child = start.launch(port)
    const isUp = await waitFor(
      async () => (child.process.exitCode !== null || child.pid === -1 ? 'ended' : await start.answers(port)),
      { timeoutMs: 60_000, everyMs: 20, what: () => `${start.name} on port ${port}:\n${child.output().slice(-2000)}` },
    )
    if (isUp !== 'ended') return { port, child }
    if (attempt < 10 && start.mayRetry.test(child.output())) continue
    throw new Error(`${start.name} ended at its start:\n${child.output().slice(-2000)}`)
  }
}
