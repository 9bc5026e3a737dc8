import { keyName } from '@firebreak/core'
import { Shield } from '@firebreak/shield'

/**
 * Makes every key of every Redis hot from its first access on, under one strategy: what a shield looks up and does not
 * find is claimed, as if another shield of the process had found it hot. `onCluster` gets the shield of each Redis and,
 * as they come, its hot keys.
 */
export function makeEveryKeyHot(strategyOf, onCluster = () => {}) {
  const seen = new WeakSet()
  const { cluster: clusterOf } = Shield.prototype
  Shield.prototype.cluster = function cluster(redisClusterId, upstream) {
    const found = clusterOf.call(this, redisClusterId, upstream)
    if (seen.has(found)) return found
    seen.add(found)
    const keys = new Set()
    onCluster(found, keys)
    heatAll(this, found, redisClusterId, keys)
    return found
  }

  function heatAll(shield, cluster, redisClusterId, keys) {
    const claim = (name) =>
      shield.takeClaim({ redisClusterId, name, crossing: { strategy: strategyOf(name), ruleId: 'every-key' } })
    // While some key is hot the hooks look; claims lapse, this one must not.
    claim('firebreak:suites')
    setInterval(() => claim('firebreak:suites'), 1000).unref()
    const { space: spaceOf } = cluster
    cluster.space = (database, identity) => {
      const space = spaceOf.call(cluster, database, identity)
      if (!seen.has(space)) heatSpace(space, claim, keys)
      seen.add(space)
      return space
    }
  }

  function heatSpace({ hot, byBytes }, claim, keys) {
    // Making a key hot looks it up again.
    let isClaiming = false
    const claimed = (name) => {
      isClaiming = true
      claim(name)
      isClaiming = false
    }
    const get = hot.get.bind(hot)
    hot.get = (name) => {
      const found = get(name)
      if (found !== undefined || isClaiming) return found
      claimed(name)
      const made = get(name)
      if (made !== undefined) keys.add(made)
      return made
    }
    const find = byBytes.find.bind(byBytes)
    byBytes.find = (bytes, start, end, hash) => {
      const found = find(bytes, start, end, hash)
      if (found !== undefined || isClaiming) return found
      claimed(keyName(bytes.subarray(start, end)))
      const made = find(bytes, start, end, hash)
      if (made !== undefined) keys.add(made)
      return made
    }
  }
}

/** What all shields did: hot keys, replies read to be kept, reads that these and copies answered. */
export function sumOf(clusters) {
  const sum = { keys: 0, loads: 0, localHits: 0, copyReads: 0 }
  for (const [{ tally }, keys] of clusters) {
    sum.keys += keys.size
    for (const counts of [tally, tally.totals, ...keys]) {
      sum.loads += counts.loads ?? counts.loadCount
      sum.localHits += counts.localHits
      sum.copyReads += counts.copyReads
    }
  }
  return sum
}

/** What is done with a key in each way of running a suite. */
export const strategies = {
  cache: () => ({
    strategy: 'LocalCache',
    cacheSize: 100_000,
    maxBytes: 256 * 1024 * 1024,
    expireTime: 60,
    expireStrategy: 'S3-FIFO',
    consistent: true,
  }),
  copies: (name) => ({
    strategy: 'RedundantKeys',
    copies: [`${name}_1`, `${name}_2`, `${name}_3`],
    ttlJitterMs: 0,
  }),
  // So wide that nobody is refused: what is compared is the way of a command, not the limit.
  limits: () => ({
    strategy: 'RateLimit',
    algorithm: 'tokenBucket',
    limit: 1_000_000,
    windowMs: 1000,
    onLimit: 'wait',
    scope: 'process',
  }),
}
