import { canOperate } from '../data/access.ts'
import { cutMiddle } from '../format/cut-middle.ts'
import { bytes, count, duration, rate } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { KeyLink } from '../keys/key-link.tsx'
import { CopyButton } from '../shell/copy-button.tsx'
import { addressOf } from '../shell/route.ts'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { cliKey, foundKeyText } from './found-key.ts'
import { type Prefix, Treemap } from './treemap.tsx'

interface FoundKey {
  readonly key: string
  readonly type?: string
  readonly bytes?: number
  readonly elements?: number
  readonly ttlMs?: number
  readonly accessesPerSecond?: number
  readonly node?: string
}

/** What `firebreak find` tells. */
export interface ShownFinding {
  readonly id: string
  readonly kind: string
  readonly method: string
  readonly startedAtMs: number
  readonly tookMs: number
  readonly source: readonly string[]
  readonly isComplete: boolean
  readonly scanned: number
  readonly keys: readonly FoundKey[]
  readonly prefixes?: Prefix
  readonly notes: readonly string[]
}

const shownKeys = 20

/** Below both a key hurts nobody. */
const smallBytes = 100_000
const smallElements = 5000

/** One search: its keys, where the bytes are, and what to do about each. */
export function FindingView({
  finding,
  redisClusterId,
}: {
  readonly finding: ShownFinding
  readonly redisClusterId?: string
}) {
  return (
    <section aria-label={t('Finding')}>
      <div class="card-head">
        <h2>
          {t('{kind} keys by {method} on {source}', {
            kind: t(finding.kind),
            method: finding.method,
            source: finding.source.join(', '),
          })}
        </h2>
        <span class="muted">
          {t('{n} examined in {time}', { n: count(finding.scanned), time: duration(finding.tookMs) })}
          {!finding.isComplete && ` · ${t('ended early')}`} · <Time at={finding.startedAtMs} isBare />
        </span>
      </div>
      {finding.prefixes !== undefined && <Treemap root={finding.prefixes} />}
      <RecordTable
        label={t('Found keys')}
        rows={finding.keys.slice(0, shownKeys)}
        id={({ key, node }) => `${node ?? ''} ${key}`}
        empty={t('No key was found.')}
        columns={[
          {
            title: t('Key'),
            // Of a search that somebody sent in, nobody knows the cluster.
            cell: ({ key }) =>
              redisClusterId === undefined ? (
                <code title={key}>{cutMiddle(key)}</code>
              ) : (
                <KeyLink redisClusterId={redisClusterId} text={foundKeyText(key)} />
              ),
          },
          { title: t('Type'), cell: ({ type }) => type ?? '–' },
          { title: t('Size'), cell: (key) => (key.bytes === undefined ? '–' : bytes(key.bytes)), isNumber: true },
          {
            title: t('Elements'),
            cell: ({ elements }) => (elements ? count(elements) : '–'),
            isNumber: true,
            isMinor: true,
          },
          {
            title: t('Accesses'),
            cell: ({ accessesPerSecond }) => (accessesPerSecond === undefined ? '–' : rate(accessesPerSecond)),
            isNumber: true,
          },
          { title: t('Advice'), cell: (key) => <Advice of={key} /> },
          {
            title: '',
            cell: ({ key, accessesPerSecond }) =>
              canOperate.value &&
              accessesPerSecond !== undefined && (
                <a
                  class="button quiet"
                  href={addressOf({
                    page: 'rules',
                    parts: [],
                    query: {
                      edit: 'new',
                      key: foundKeyText(key),
                      cluster: redisClusterId ?? '*',
                      rate: String(Math.round(accessesPerSecond)),
                    },
                  })}
                >
                  {t('Apply')}
                </a>
              ),
            isTight: true,
          },
        ]}
      />
      {finding.notes.map((note) => (
        <p key={note} class="muted">
          {note}
        </p>
      ))}
    </section>
  )
}

/** What is usually done about such a key, with the command. */
function Advice({ of: { key, type, bytes: size, elements, accessesPerSecond } }: { readonly of: FoundKey }) {
  const name = cliKey(key)
  if (accessesPerSecond !== undefined) return <span>{t('Give it a rule.')}</span>
  if (size !== undefined && size < smallBytes && (elements ?? 0) < smallElements)
    return <span>{t('Not big: nothing to do.')}</span>
  const [advice, command] = adviceFor(type, name, size ?? 0)
  return (
    <>
      {advice} <code>{command}</code> <CopyButton text={command} />
      {deletes.test(command) && <small class="problem">{t('This deletes data: it cannot be undone.')}</small>}
      {isSplittable(type) && <Split key={name} name={name} />}
    </>
  )
}

function isSplittable(type: string | undefined): boolean {
  return type === 'hash' || type === 'set' || type === 'list'
}

/** What `firebreak find advise` does by itself: copies into segments, compares, and leaves the key until it is cut over. */
function Split({ name }: { readonly name: string }) {
  const command = `firebreak find advise --apply split --key ${name}`
  return (
    <small>
      {t('Or split it; the key stays until you cut over:')} <code>{command}</code> <CopyButton text={command} />
    </small>
  )
}

/** Commands after which something is gone. */
const deletes = /^(LTRIM|XTRIM|ZREMRANGEBYRANK|UNLINK) /

function adviceFor(type: string | undefined, name: string, size: number): [advice: string, command: string] {
  switch (type) {
    case 'string':
      return size > 1_000_000
        ? [t('Compress it, or split it.'), `STRLEN ${name}`]
        : [t('Read it in parts.'), `GETRANGE ${name} 0 1023`]
    case 'list':
      return [t('Trim it.'), `LTRIM ${name} -10000 -1`]
    case 'stream':
      return [t('Trim it.'), `XTRIM ${name} MAXLEN ~ 10000`]
    case 'hash':
      return [t('Read it in parts, split it by field.'), `HSCAN ${name} 0 COUNT 100`]
    case 'set':
      return [t('Read it in parts.'), `SSCAN ${name} 0 COUNT 100`]
    case 'zset':
      return [t('Keep only the best.'), `ZREMRANGEBYRANK ${name} 0 -10001`]
    default:
      return [t('Delete it without blocking.'), `UNLINK ${name}`]
  }
}
