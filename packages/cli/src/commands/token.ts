import { userInfo } from 'node:os'
import { parseArgs } from 'node:util'
import { didYouMean } from '@firebreak/core'
import {
  type CredentialView,
  newCredentialBody,
  openCredentials,
  type StorePlace,
  toNewCredential,
} from '@firebreak/hub'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'
import { askSecret } from '../connect/ask-secret.ts'
import { placeOrder, storeOptions, storeOrHub } from '../connect/store-place.ts'
import { durationMs } from '../flags/quantities.ts'
import { HubApi } from '../hub-api/hub-api.ts'
import { formatHelp, formatOptions, printRecords } from '../output/print-records.ts'
import type { Column } from '../output/table.ts'

const subcommands = ['create', 'list', 'rotate', 'revoke']
const time = (at: number | null) => (at === null ? 'never' : new Date(at).toISOString())

/** Until when each replaced token is accepted. */
const oldTokens = ({ tokens }: CredentialView) =>
  tokens.filter(({ expiresAt }) => expiresAt !== null).map(({ expiresAt }) => time(expiresAt))

const columns: readonly Column<CredentialView>[] = [
  { title: 'ID', text: ({ id }) => id },
  { title: 'NAME', text: ({ name }) => name },
  { title: 'FOR', text: ({ kind, role }) => role ?? kind },
  { title: 'SERVICES', text: ({ services }) => services?.join(' '), isFlexible: true },
  { title: 'CLUSTERS', text: ({ clusters }) => clusters?.join(' '), isFlexible: true },
  { title: 'PROCESSES', text: ({ maxProcesses }) => maxProcesses?.toString(), align: 'right' },
  { title: 'CERTIFICATES', text: ({ certificates }) => certificates.join(' ') },
  { title: 'LAST USED', text: ({ lastUsedAt }) => time(lastUsedAt) },
  {
    title: 'OLD TOKEN UNTIL',
    text: (credential) => oldTokens(credential).join(' '),
  },
  { title: 'CREATED', text: ({ createdAt, createdBy }) => `${time(createdAt)} by ${createdBy}` },
]

const options = {
  ...storeOptions,
  app: { type: 'string' },
  person: { type: 'string' },
  role: { type: 'string' },
  service: { type: 'string', multiple: true },
  cluster: { type: 'string', multiple: true },
  certificate: { type: 'string', multiple: true },
  'max-processes': { type: 'string' },
  'ask-password': { type: 'boolean', default: false },
  grace: { type: 'string' },
  ...formatOptions,
} as const

type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>['values']

interface Made {
  readonly token: string
  readonly credential: CredentialView
}

/** Where tokens are changed: at a hub, or in a store without one. */
interface Tokens {
  list(): Promise<readonly CredentialView[]>
  create(body: unknown): Promise<Made>
  rotate(id: string, graceMs: number): Promise<Made>
  revoke(id: string): Promise<void>
  close(): Promise<void>
}

export const token: Command = {
  subcommands,
  flags: Object.keys(options),
  help: `Tokens of sensors and users: create, list, rotate, revoke. A token is shown once; the hub stores only its hash.

Examples:
  firebreak token create --app shop --service shop --service 'cart-*' --cluster main
  firebreak token create --person ann --role operator --ask-password
  firebreak token create --person root --role admin --data-folder ./data    the first one, without a hub
  firebreak token list
  firebreak token rotate shop --grace 24h     old and new are both accepted for a day
  firebreak token revoke shop                 at once; open connections are closed

Options:
  --app NAME            a token for sensors …
  --service PATTERN     … of these services (* for any characters); may be repeated
  --cluster PATTERN     … and these clusters; may be repeated
  --max-processes COUNT … and this many processes at a time, so that nobody can invent more (default: maxTokenProcesses)
  --person NAME         a token for a person …
  --role ROLE           … viewer, operator or admin
  --ask-password        also set a password for signing in; prompted for, or read from the first line of stdin
  --certificate NAME    a name in a client certificate that is accepted instead of the token; may be repeated
  --grace TIME          how long the replaced token is still accepted (default 24h). Tokens replaced earlier end no later than
                        this one: a second rotation with a shorter --grace shortens theirs, and 0s ends all at once
  --data-folder DIR     change the tokens of this store, without asking a hub (env FIREBREAK_HUB_DATA_FOLDER)
  --store-url URL       the same on a Redis (env FIREBREAK_HUB_STORE_URL, or …_FILE for a file)
  --hub URL             the hub; needs an admin's token in FIREBREAK_TOKEN (env FIREBREAK_HUB)
${formatHelp}
${placeOrder}
LAST USED: when a process last connected, or a person last made a request, with the token; written at most every ten seconds.
A process that stays connected does not renew it, so an old time alone does not mean that a token is unused.
OLD TOKEN UNTIL: when each replaced token stops being accepted.
`,
  async run(args, io) {
    const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options })
    const [action = 'list', name] = positionals
    if (!subcommands.includes(action)) {
      const close = didYouMean(action, subcommands)
      throw new UsageError(`unknown command "token ${action}"${close ? `; did you mean "token ${close}"?` : ''}`)
    }
    if ((action === 'rotate' || action === 'revoke') && name === undefined) {
      throw new UsageError(`usage: firebreak token ${action} NAME`)
    }
    const body = action === 'create' ? await bodyOf(values, io) : undefined
    const tokens = await tokensOf(values, io)
    try {
      if (action === 'list') {
        printRecords(io, values, columns, await tokens.list(), 'No tokens: everyone on this machine can do everything.')
      } else if (action === 'revoke') {
        await tokens.revoke(name!)
        io.stderr.write(`${name} is revoked\n`)
      } else {
        const made =
          action === 'create'
            ? await tokens.create(body)
            : await tokens.rotate(name!, durationMs('grace', values.grace ?? '24h'))
        const ends = oldTokens(made.credential).join(', ')
        if (action === 'rotate')
          io.stderr.write(ends === '' ? 'No other token is accepted.\n' : `Old token until ${ends}.\n`)
        // Alone on stdout, so that a script can read it.
        io.stderr.write(`Token of ${made.credential.name}, shown only once:\n`)
        io.stdout.write(`${made.token}\n`)
      }
    } finally {
      await tokens.close()
    }
    return 0
  },
}

async function bodyOf(values: Values, io: CommandIo): Promise<unknown> {
  const { app, person, role, service, cluster, certificate: certificates = [] } = values
  if ((app === undefined) === (person === undefined)) throw new UsageError('give either --app NAME or --person NAME')
  if (app !== undefined) {
    if (service === undefined || cluster === undefined) {
      throw new UsageError("an app token needs --service and --cluster; '*' stands for all of them")
    }
    const given = values['max-processes']
    const processes = given === undefined ? {} : { maxProcesses: Number(given) }
    return { kind: 'app', name: app, services: service, clusters: cluster, certificates, ...processes }
  }
  if (role === undefined) throw new UsageError('a person needs --role: viewer, operator or admin')
  const password = values['ask-password'] ? await askSecret('Password: ', io) : undefined
  return { kind: 'person', name: person, role, certificates, ...(password !== undefined && { password }) }
}

async function tokensOf(values: Values, io: CommandIo): Promise<Tokens> {
  const place = storeOrHub(values, io)
  if (place !== undefined) return tokensOfStore(place)
  const api = HubApi.of(values.hub, io)
  const at = (id: string) => `/v1/tokens/${encodeURIComponent(id)}`
  return {
    list: async () => (await api.call<{ tokens: CredentialView[] }>('GET', '/v1/tokens')).tokens,
    create: (body) => api.call('POST', '/v1/tokens', body),
    rotate: (id, graceMs) => api.call('POST', `${at(id)}/rotate`, { graceMs }),
    revoke: (id) => api.call('DELETE', at(id)),
    close: async () => {},
  }
}

async function tokensOfStore(place: StorePlace): Promise<Tokens> {
  const { book, close } = await openCredentials(place)
  const who = `${userInfo().username} on the store`
  return {
    list: async () => book.list(),
    create: async (body) => {
      const parsed = newCredentialBody.safeParse(body)
      if (!parsed.success) throw new UsageError(parsed.error.issues[0]!.message)
      return book.create(await toNewCredential(parsed.data), who)
    },
    rotate: (id, graceMs) => book.rotate(id, graceMs, who),
    revoke: (id) => book.revoke(id, who),
    close,
  }
}
