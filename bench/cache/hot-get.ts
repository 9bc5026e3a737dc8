import { workMs } from '../harness/work-time.ts'

const concurrency = 100

/** A client's GET, whichever library it is of. */
export interface GetClient {
  get(key: string): Promise<string | null>
}

/** GETs of one key a second through the normal API, 100 at a time. */
export async function getsPerSecond(client: GetClient, key: string, total: number): Promise<number> {
  let left = total
  const worker = async () => {
    while (left-- > 0) await client.get(key)
  }
  globalThis.gc?.()
  const before = workMs()
  await Promise.all(Array.from({ length: concurrency }, worker))
  return (total / (workMs() - before)) * 1000
}
