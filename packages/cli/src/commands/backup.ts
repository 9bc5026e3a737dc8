import { existsSync, readFileSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { writePrivateFile } from '@firebreak/core/node'
import { type HubStore, openStoreAt } from '@firebreak/hub'
import { type BackupCounts, BackupError, backupLines, countsOf, restoreLines } from '../backup/store-backup.ts'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'
import { storeOptions, storePlace } from '../connect/store-place.ts'

const { hub: _, ...placeOptions } = storeOptions
type StoreFlags = { readonly [name in keyof typeof placeOptions]?: string | undefined }
const placeHelp = `  --data-folder DIR  the folder of a hub (env FIREBREAK_HUB_DATA_FOLDER)
  --store-url URL    the Redis that hubs share (env FIREBREAK_HUB_STORE_URL, or …_FILE for a file)
`
/** A full store gives about 200 MB. */
const maxFileBytes = 1024 * 1024 * 1024

export const backup: Command = {
  flags: ['out', ...Object.keys(placeOptions)],
  help: `Write what a hub keeps to a file: rules, switch, rate-limit policies, tokens (as hashes), barred processes, pre-warm jobs,
alert routes and silences, settings made in the console, recorded heat, history and audit. Hubs may run meanwhile.
The file holds the addresses and secrets of alert routes: keep it as you keep those.

Examples:
  firebreak backup --data-folder ./data --out firebreak-backup.jsonl
  firebreak backup --store-url redis://store:6379 | gzip > firebreak-backup.jsonl.gz

Options:
  --out FILE         the output file, readable only by you (default: stdout)
${placeHelp}`,
  async run(args, io) {
    const { values } = parseArgs({ args: [...args], options: { out: { type: 'string' }, ...placeOptions } })
    const store = await openStore(values, io, true)
    try {
      const lines = await backupLines(store, Date.now())
      const text = `${lines.join('\n')}\n`
      if (values.out === undefined) io.stdout.write(text)
      else writePrivateFile(values.out, text)
      io.stderr.write(`backed up: ${tell(countsOf(lines.map((line) => JSON.parse(line))))}\n`)
    } finally {
      await store.close()
    }
    return 0
  },
}

export const restore: Command = {
  // A store that is half restored would be neither empty nor whole.
  finishes: true,
  flags: Object.keys(placeOptions),
  help: `Read a backup into an empty store. Start the hub afterwards.

Examples:
  firebreak restore firebreak-backup.jsonl --data-folder ./new-data
  firebreak restore firebreak-backup.jsonl --store-url redis://new-store:6379

The whole file is checked before anything is written. A backup of one kind of store can be restored into the other:
this is how a hub with a folder becomes three hubs on a Redis.

Options:
${placeHelp}`,
  async run(args, io) {
    const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options: placeOptions })
    const [file] = positionals
    if (file === undefined) throw new UsageError('usage: firebreak restore FILE')
    const texts = readLines(file)
    const store = await openStore(values, io, false)
    try {
      const who = `${userInfo().username} by firebreak restore`
      io.stderr.write(`restored: ${tell(await restoreLines(store, texts, { who, now: Date.now() }))}\n`)
    } finally {
      await store.close()
    }
    return 0
  },
}

function readLines(file: string): string[] {
  try {
    if (statSync(file).size > maxFileBytes) throw new BackupError(`${file} is larger than any backup`)
    return readFileSync(file, 'utf8').split('\n')
  } catch (error) {
    if (error instanceof BackupError) throw error
    throw new UsageError(`the backup cannot be read: ${(error as Error).message}`, { cause: error })
  }
}

async function openStore(values: StoreFlags, io: CommandIo, mustExist: boolean): Promise<HubStore> {
  const { 'data-folder': folder, 'store-url': url } = values
  if (folder !== undefined && url !== undefined) throw new UsageError('name one store: --data-folder or --store-url')
  // A flag takes precedence over the environment, which may name the other kind.
  const place = folder === undefined ? storePlace(values, io) : { dataFolder: folder }
  if (place === undefined) throw new UsageError('name the store: --data-folder DIR or --store-url URL')
  if (mustExist && 'dataFolder' in place && !existsSync(join(place.dataFolder, 'hub.sqlite'))) {
    throw new UsageError(`no store found in ${place.dataFolder}: it has no hub.sqlite`)
  }
  return openStoreAt(place)
}

function tell(counts: BackupCounts): string {
  const parts = [
    ['rule', 'rules'],
    ['policy', 'policy versions'],
    ['tokens', 'tokens'],
    ['barred', 'barred processes'],
    ['job', 'jobs'],
    ['alerts', 'alert routes and silences'],
    ['settings', 'settings'],
    ['forecasts', 'forecasts'],
    ['history', 'events'],
    ['block', 'blocks of heat'],
    ['audit', 'audit entries'],
  ] as const
  return parts
    .filter(([sort]) => sort === 'rule' || counts[sort] > 0)
    .map(([sort, name]) => `${counts[sort]} ${name}`)
    .join(', ')
}
