import { createRequire } from 'node:module'

/** A snowflake package of npm: how to make one generator and get its next id. */
export interface Peer {
  readonly name: string
  make(): () => bigint
}

const require = createRequire(import.meta.url)

/** Popular snowflake packages, as their own documentation uses them: one instance, one call after the other. */
export const peers: readonly Peer[] = [
  {
    name: 'snowflake-id',
    make() {
      const { default: SnowflakeId } = require('snowflake-id') as {
        default: new (options: object) => { generate(): string }
      }
      const generator = new SnowflakeId({ mid: 42, offset: 1_288_834_974_657 })
      return () => BigInt(generator.generate())
    },
  },
  {
    name: '@sapphire/snowflake',
    make() {
      const { Snowflake } = require('@sapphire/snowflake') as {
        Snowflake: new (epoch: Date) => { generate(): bigint }
      }
      const generator = new Snowflake(new Date(1_288_834_974_657))
      return () => generator.generate()
    },
  },
  {
    name: 'nodejs-snowflake',
    make() {
      const { Snowflake } = require('nodejs-snowflake') as {
        Snowflake: new (options: object) => { getUniqueID(): bigint }
      }
      const generator = new Snowflake({ custom_epoch: 1_288_834_974_657, instance_id: 42 })
      return () => generator.getUniqueID()
    },
  },
  {
    name: 'simple-flakeid',
    make() {
      const { SnowflakeIdv1 } = require('simple-flakeid') as {
        SnowflakeIdv1: new (options: object) => { NextBigId(): bigint }
      }
      const generator = new SnowflakeIdv1({ workerId: 42 })
      return () => generator.NextBigId()
    },
  },
  {
    name: 'flake-idgen',
    make() {
      const FlakeId = require('flake-idgen') as new (options: object) => { next(): Buffer }
      const generator = new FlakeId({ id: 42, epoch: 1_288_834_974_657 })
      return () => {
        for (;;) {
          try {
            return generator.next().readBigUInt64BE()
          } catch {
            // It throws when a millisecond is used up, and asks to be called again.
          }
        }
      }
    },
  },
]

/** How many of the ids occur more than once. */
export function duplicatesOf(ids: BigUint64Array): number {
  const sorted = ids.slice().sort()
  let duplicates = 0
  for (let index = 1; index < sorted.length; index++) if (sorted[index] === sorted[index - 1]) duplicates++
  return duplicates
}
