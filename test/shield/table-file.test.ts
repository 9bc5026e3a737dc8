import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemRuntime } from '@firebreak/core'
import { startSource, temporaryFolder, waitFor } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { KeptEntries } from '../../packages/shield/src/table/kept-entries.ts'
import { TableFile } from '../../packages/shield/src/table/table-file.ts'
import { Trouble, type Warning } from '../../packages/shield/src/trouble/trouble.ts'

test('whenever its writer is killed, the file holds one complete table', async () => {
  const path = join(temporaryFolder('table'), 'table.json')
  const warnings: Warning[] = []
  const means = { ...systemRuntime, trouble: new Trouble((warning) => warnings.push(warning)) }
  const file = new TableFile(path, () => expect.unreachable(), means)
  const read = () => file.read(new KeptEntries())?.snapshot
  let version = 0
  for (let round = 0; round < 4; round++) {
    const writer = startSource(new URL('./table-writer-process.ts', import.meta.url), [path, String(version)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    await waitFor(() => (read()?.version ?? 0) > version)
    // At a random moment of a write: the only thing that is meant to be random here.
    await sleep(Math.random() * 30)
    writer.process.kill('SIGKILL')
    await waitFor(() => writer.process.exitCode !== null || writer.process.signalCode !== null)
    const table = read()!
    expect(table.entries).toHaveLength(2000)
    expect(new Set(table.entries.map(({ ruleId }) => ruleId))).toEqual(new Set([`version ${table.version}`]))
    version = table.version
  }
  expect(warnings).toEqual([])
})
