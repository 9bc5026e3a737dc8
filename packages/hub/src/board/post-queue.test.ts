import { parseRule } from '@firebreak/core/rules'
import { expect, test } from 'vitest'
import type { HeatTrack } from '../heat/heat-track.ts'
import { PostQueue, type PostQueueOptions } from './post-queue.ts'

const ruleOf = (windowMs: number) => parseRule({ id: 'r', prefix: 'k', threshold: 10, windowMs })

test('what the board is to be told outlives rules that are read again, and not one that counts otherwise', () => {
  const queue = new PostQueue({ bucketOf: () => 0 } as Partial<PostQueueOptions> as PostQueueOptions)
  const track = { redisClusterId: 'main', key: 'k1' } as Partial<HeatTrack> as HeatTrack
  const extras = { adopt: { level: 1, since: 5, strategy: '{}' } }
  queue.watch(track, ruleOf(1000), 0, 'hot')!.extras = extras
  expect(queue.watch(track, ruleOf(1000), 0, 'hot')!.extras).toEqual(extras)
  expect(queue.watch(track, ruleOf(2000), 0, 'hot')!.extras).toEqual({})
})
