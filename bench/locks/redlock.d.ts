// redlock 4 brings no types; only what the benchmark uses.
declare module 'redlock' {
  class Redlock {
    constructor(clients: readonly unknown[], options: { retryCount: number })
    lock(resource: string, ttlMs: number): Promise<{ unlock(): Promise<void> }>
  }
  export = Redlock
}
