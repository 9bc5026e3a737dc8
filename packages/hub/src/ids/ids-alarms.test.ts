import { IdService, SegmentIds, sqliteSegmentStore } from '@firebreak/ids'
import { fakeRuntime } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { AlarmBoard } from '../alarms/alarm-board.ts'
import { IdsAlarms } from './ids-alarms.ts'

test('alarms of the ids reach the board and its listeners, also those from before the hub, and leave it again', async () => {
  const runtime = fakeRuntime()
  const alarms = new IdsAlarms(runtime)
  const segments = await SegmentIds.start({ stores: [sqliteSegmentStore(':memory:')], onAlarm: alarms.tell })
  alarms.tell({ code: 'FB_IDS_REGISTRY_DOWN', message: 'the registry is down' })
  const board = new AlarmBoard(runtime.clock)
  const heard: string[] = []
  board.onChange((event, alarm) => heard.push(`${event} ${alarm.id}`))
  alarms.showOn(board, new IdService({ segments }))
  alarms.tell({ code: 'FB_IDS_WORKER_LOST', message: 'worker id 3 was taken over' })
  expect(board.list()).toMatchObject([
    { id: 'ids:FB_IDS_REGISTRY_DOWN', cause: expect.stringContaining('the registry is down') },
    { id: 'ids:FB_IDS_WORKER_LOST', severity: 'warning' },
  ])
  runtime.clock.advance(30_000)
  expect(board.list()).toHaveLength(2)
  runtime.clock.advance(31_000)
  expect(board.list()).toEqual([])
  expect(heard).toEqual([
    'raised ids:FB_IDS_REGISTRY_DOWN',
    'raised ids:FB_IDS_WORKER_LOST',
    'cleared ids:FB_IDS_REGISTRY_DOWN',
    'cleared ids:FB_IDS_WORKER_LOST',
  ])
  alarms.close()
  await segments.close()
})
