import { waitFor } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { onHotKeys } from './on-hot-keys.ts'

const collect = (globalThis as unknown as { gc(): void }).gc

/** What a cluster's shield does with its listeners. */
function fakeCluster() {
  const listeners = new Set<() => void>()
  return {
    listeners,
    tell: () => {
      for (const listener of listeners) listener()
    },
    onHotKeys(listener: () => void) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** Listens as the hooks of a client do: nothing else holds the listener. */
function listen(cluster: ReturnType<typeof fakeCluster>, client: { told: number }): () => void {
  return onHotKeys(cluster, client, () => {
    client.told++
  })
}

test('a client is notified of hot keys after any number of garbage collections', async () => {
  const cluster = fakeCluster()
  const client = { told: 0 }
  listen(cluster, client)
  for (let round = 1; round <= 3; round++) {
    // A WeakRef keeps its target alive until the end of the turn in which it was created or read.
    await new Promise(setImmediate)
    collect()
    cluster.tell()
    expect(client.told).toBe(round)
  }
})

test('a client that stopped listening is not notified any more', () => {
  const cluster = fakeCluster()
  const client = { told: 0 }
  listen(cluster, client)()
  cluster.tell()
  expect([client.told, cluster.listeners.size]).toEqual([0, 0])
})

test('a client that nobody references any more is forgotten', async () => {
  const cluster = fakeCluster()
  listen(cluster, { told: 0 })
  const isForgotten = () => {
    collect()
    return cluster.listeners.size === 0
  }
  await waitFor(isForgotten, { what: 'the listener to be forgotten' })
})
