import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type AlarmNotice, alertShapeNames, exampleRequest } from './alert-examples.ts'
import { type Schema, TypeSchemas } from './type-schemas.ts'

/** The page of events: what the timeline, the API and webhooks carry, written from their types and from real notices. */
export const eventsPage = new URL('../../docs/reference/events.md', import.meta.url)

const api = fileURLToPath(new URL('../../packages/core/src/api/', import.meta.url))

/** The page as it should be. */
export function writtenEventsPage(): string {
  const sources = readdirSync(api).map((file) => readFileSync(join(api, file), 'utf8'))
  const hub = readFileSync(new URL('../../packages/hub/src/alarms/alarm-webhooks.ts', import.meta.url), 'utf8')
  const types = new TypeSchemas([...sources, hub])
  const notice: AlarmNotice = {
    event: 'raised',
    hubId: 'hub-1',
    at: Date.UTC(2026, 10, 17, 12),
    alarm: {
      ...{ id: 'hot-key:main/product_100', severity: 'warning', since: Date.UTC(2026, 10, 17, 11, 59, 50), count: 10 },
      cause: 'product_100 takes 42 % of all accesses and is not being handled: rule watch only observes',
      retry: 'Open the key and cache, copy or limit it, or change its rule.',
      subject: { redisClusterId: 'main', key: 'product_100' },
    },
  }
  return `# Events

What Firebreak tells of what happens, and where. Written by \`npm run references\` from the types of the API and from the notices
that a hub sends.

| you want | ask |
|---|---|
| what happened to keys, step by step | the console's page **Timeline**, or [\`GET /v1/history/events\`](api.md#history): \`EpisodesView\`, with each time a key was hot and, with \`events\`, single events |
| the events of a period beside its series | [\`GET /v1/history\`](api.md#history): \`HistoryView.events\` |
| the events of one key | \`GET /v1/keys/{cluster}/{key}\`: \`KeyDetail.events\` |
| to be told of alarms | [\`alarmWebhooks\`](config.md), or [routes](api.md#alarms) to Slack, DingTalk, Feishu, Teams, PagerDuty or your own receiver |
| who changed what | \`GET /v1/audit\`: \`AuditEntry\`; changes are no events |
| what is true now, each second | \`WS /v1/live\`: one \`Overview\` as text |

Webhooks carry alarms only. To be told of single keys, set [\`hotKeyAlarmPercent\`](config.md), or ask the API.

## Kinds of events

${table(['kind', 'what happened'], kindsOf(sources))}

## Fields of an event

${fields(types, 'HistoryEvent')}

## Fields of an episode

One time that a key was hot under a rule, from its first event to its last.

${fields(types, 'HotEpisode')}

## Notices of alarms

The body of a POST to \`alarmWebhooks\` and to a route of the shape \`plain\`. \`raised\` comes when an alarm begins (to a route: when it has
lasted 10 s, and again if it becomes critical), \`cleared\` when it ends, \`test\` when somebody tries a route. With a secret the header
\`firebreak-signature: sha256=…\` is the HMAC-SHA256 of the body.

${fields(types, 'AlarmNotice')}

${fields(types, 'AlarmView')}

Of hubs that share a store, each sends its own alarms, and the first to see it sends what concerns the whole fleet: \`hot-key:…\`,
\`hub-lost:…\`, \`rollout:…\`, \`report-interval\`, \`rules-newer\`, \`rules-diverged\` and \`board-reset\`. Without a store that answers each
of them tells: do not take a second notice for a second alarm. [The runbook](../guides/runbook.md#from-alarm-to-section) has every alarm
and what to do.

## Bodies by shape

${alertShapeNames.map((shape) => `\`${shape}\`:\n\n\`\`\`json\n${JSON.stringify(exampleRequest(shape, notice), null, 2)}\n\`\`\``).join('\n\n')}
`
}

/** Each kind with its comment in the source. */
function kindsOf(sources: readonly string[]): string[][] {
  const source = sources.find((text) => text.includes('export interface HistoryEvent'))!
  const own = source.slice(source.indexOf('export interface HistoryEvent'))
  const rows = own.slice(0, own.search(/^\}/m)).matchAll(/\/\*\* (.*?) \*\/\s*\| '(\w+)'/g)
  return Array.from(rows, ([, text, kind]) => [`\`${kind}\``, text!.replace(/\.$/, '')])
}

function fields(types: TypeSchemas, name: string): string {
  const { properties, required } = types.resolve(types.named(name)) as {
    readonly properties: Readonly<Record<string, Schema>>
    readonly required: readonly string[]
  }
  const rows = Object.entries(properties).map(([field, schema]) => [
    `\`${field}\``,
    typeText(schema) + (required.includes(field) ? '' : ', may be absent'),
    String(schema['description'] ?? '').replace(/\.$/, ''),
  ])
  return table([name, 'type', 'meaning'], rows)
}

/** A type in a few words. */
function typeText(schema: Schema): string {
  const ref = schema['$ref'] as string | undefined
  if (ref !== undefined) return `\`${ref.slice(ref.lastIndexOf('/') + 1)}\``
  if (schema['anyOf'] !== undefined) return (schema['anyOf'] as Schema[]).map(typeText).join(' or ')
  if (schema['enum'] !== undefined && (schema['enum'] as string[]).length > 6) return 'one of the kinds'
  if (schema['enum'] !== undefined) return (schema['enum'] as string[]).map((value) => `\`${value}\``).join(', ')
  if (schema['type'] === 'array') return `list of ${typeText(schema['items'] as Schema)}`
  if (schema['type'] !== 'object') return String(schema['type'])
  return `\`{ ${Object.keys(schema['properties'] as object).join(', ')} }\``
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(heads), `|${heads.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n')
}
