import { parseArgs } from 'node:util'
import { openRedis } from '@firebreak/redis'
import { type DeadLetter, DeadLetters } from '@firebreak/sale'
import { type Command, type CommandIo, UsageError } from '../../command/command.ts'
import { secretSetting } from '../../connect/secret-setting.ts'
import { formatHelp, formatOptions, printRecords } from '../../output/print-records.ts'
import type { Column } from '../../output/table.ts'

const columns: readonly Column<DeadLetter>[] = [
  { title: 'VOUCHER', text: (letter) => letter.voucherId },
  { title: 'ID', text: (letter) => letter.id },
  { title: 'SINCE', text: (letter) => new Date(letter.deadAt).toISOString() },
  { title: 'KIND', text: (letter) => letter.fields['kind'] ?? '' },
  { title: 'ORDER', text: (letter) => letter.fields['order'] ?? '' },
  { title: 'USER', text: (letter) => letter.fields['user'] ?? '' },
  {
    title: 'REASON',
    text: ({ reason, cause }) => (cause === undefined ? reason : `${reason} (${cause})`),
    isFlexible: true,
  },
]

const pageSize = 1000
const place = { flag: 'redis', variable: 'FIREBREAK_SALE_REDIS' }

/** The `sale` command. */
export const sale: Command = {
  subcommands: ['dead'],
  flags: ['redis', 'voucher', 'id', 'all', 'limit', 'json', 'ndjson', 'csv'],
  help: `Orders of a sale that could not be stored: see why, retry them, or discard them.

Examples:
  firebreak sale dead list
  firebreak sale dead list --voucher 42 --json
  firebreak sale dead replay --voucher 42 --id 1770000000000-0
  firebreak sale dead replay --voucher 42 --all
  firebreak sale dead discard --voucher 42 --id 1770000000000-0

A dead letter is kept until it is replayed or discarded. Replayed letters go back to the workers, in order; one that
fails again becomes a dead letter again, with the new reason. Fix the cause first.

Options:
  --redis URL     the Redis of the sale (env FIREBREAK_SALE_REDIS, or FIREBREAK_SALE_REDIS_FILE for a file;
                  default redis://127.0.0.1:6379)
  --voucher ID    only this voucher; replay and discard need it
  --id ID         which letter; may be repeated
  --all           every letter of the voucher
  --limit N       how many letters of a voucher to list (default 100)
${formatHelp}
`,
  async run(args, io) {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        redis: { type: 'string' },
        voucher: { type: 'string' },
        id: { type: 'string', multiple: true },
        all: { type: 'boolean' },
        limit: { type: 'string' },
        ...formatOptions,
      },
    })
    const [subject, action, ...more] = positionals
    if (subject !== 'dead') throw new UsageError('usage: "sale dead list", "sale dead replay" or "sale dead discard"')
    if (more.length > 0) throw new UsageError(`"${more[0]}" is one word too many`)
    const url = secretSetting(place, values.redis, io) ?? 'redis://127.0.0.1:6379'
    const { redis, close } = await openRedis(url)
    try {
      const letters = new DeadLetters(redis)
      if (action === 'list') {
        const limit = Number(values.limit ?? '100')
        if (!Number.isSafeInteger(limit) || limit < 1)
          throw new UsageError(`--limit ${values.limit} is not a whole number`)
        printRecords(io, values, columns, await list(letters, values.voucher, limit), 'There are no dead letters.')
        return 0
      }
      if (action === 'replay' || action === 'discard') return await settle(letters, action, values, io)
      throw new UsageError(`"${action ?? ''}" is not list, replay or discard`)
    } finally {
      close()
    }
  },
}

async function list(letters: DeadLetters, voucherId: string | undefined, limit: number): Promise<DeadLetter[]> {
  const vouchers = voucherId === undefined ? [...(await letters.count()).keys()] : [voucherId]
  return (await Promise.all(vouchers.map((id) => letters.list(id, { limit })))).flat()
}

async function settle(
  letters: DeadLetters,
  action: 'replay' | 'discard',
  {
    voucher,
    id = [],
    all = false,
  }: { voucher?: string | undefined; id?: string[] | undefined; all?: boolean | undefined },
  io: CommandIo,
): Promise<number> {
  if (voucher === undefined) throw new UsageError(`${action} needs --voucher`)
  if (all === id.length > 0) throw new UsageError(`${action} needs either --id or --all`)
  const wanted = all ? await allOf(letters, voucher) : id
  const done = await letters[action](voucher, wanted)
  io.stdout.write(`${done} of ${wanted.length} letters ${action === 'replay' ? 'replayed' : 'discarded'}\n`)
  return done === wanted.length ? 0 : 1
}

/** The letters present now: one that fails again meanwhile is not replayed forever. */
async function allOf(letters: DeadLetters, voucherId: string): Promise<string[]> {
  const ids: string[] = []
  for (;;) {
    const after = ids.at(-1)
    const page = await letters.list(voucherId, { limit: pageSize, ...(after === undefined ? {} : { after }) })
    ids.push(...page.map((letter) => letter.id))
    if (page.length < pageSize) return ids
  }
}
