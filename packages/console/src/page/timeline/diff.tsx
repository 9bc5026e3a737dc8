import { keyText, readableKey } from '@firebreak/core'
import { cutMiddle } from '../format/cut-middle.ts'
import { dateTime, duration } from '../format/format.ts'
import { t } from '../text/text.ts'

/** One field that differs; undefined where it is not there. */
interface Change {
  readonly path: string
  readonly before: unknown
  readonly after: unknown
}

/** The fields in which two JSON values differ. */
export function changesBetween(before: unknown, after: unknown, path = ''): Change[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  if (!isHolder(before) || !isHolder(after)) return [{ path, before, after }]
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names.flatMap((name) => changesBetween(before[name], after[name], path === '' ? name : `${path}.${name}`))
}

function isHolder(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/** Before → after, field by field; what is new or gone as a whole can be unfolded. */
export function Diff({ before, after }: { readonly before: unknown; readonly after: unknown }) {
  // Somebody asked or started something: nothing was there before, nor is now.
  if (before == null && after == null) return <>–</>
  const changes = changesBetween(before ?? undefined, after ?? undefined)
  if (changes.length === 0) return <span class="muted">{t('no difference')}</span>
  if (changes.length === 1 && changes[0]!.path === '' && isHolder(after ?? before))
    return <Whole of={after ?? before} />
  return (
    <dl class="diff">
      {changes.map(({ path, before: was, after: is }) => (
        <div key={path}>
          <dt>{nameOf(path) || t('all of it')}</dt>
          <dd>
            {was !== undefined && <del>{textOf(was, path)}</del>}
            {was !== undefined && is !== undefined && <span aria-hidden="true"> → </span>}
            {is !== undefined && <ins>{textOf(is, path)}</ins>}
          </dd>
        </div>
      ))}
    </dl>
  )
}

/** Something that was made or deleted: its main fields, and all of it when asked for. */
function Whole({ of: value }: { readonly of: unknown }) {
  return (
    <details class="whole">
      <summary>{cutMiddle(shortText(value), 100)}</summary>
      <pre>{JSON.stringify(value, null, 2)}</pre>
    </details>
  )
}

/** The values that tell what something is, without names and braces. */
export function shortText(value: unknown): string {
  if (Array.isArray(value)) return value.map(shortText).join(', ')
  if (!isHolder(value)) return textOf(value)
  const parts = Object.entries(value)
    .filter(([name, part]) => !quiet.has(name) && part !== '*' && part !== '')
    .map(([name, part]) => {
      if (!isHolder(part)) return `${name} ${textOf(part, name)}`
      // A list of plain values needs its name; of parts, each has names of its own.
      return Array.isArray(part) && part.some((one) => !isHolder(one)) ? `${name} ${shortText(part)}` : shortText(part)
    })
  return parts.filter((part) => part !== '').join(', ')
}

/** Parts of a rule that are the same in nearly every one. */
const quiet = new Set(
  'id kind priority measure windowMs minHoldMs exit cacheSize maxBytes algorithm expireTime expireStrategy consistent template ttlJitterMs'.split(
    ' ',
  ),
)

/** `levels.0.enter` as people count: `level 1: enter`. */
function nameOf(path: string): string {
  return path
    .replace(/levels\.(\d+)\.?/g, (_, index: string) => `${t('level {n}', { n: Number(index) + 1 })}: `)
    .replace(/strategies\.(\d+)\.?/g, (_, index: string) => `${t('strategy {n}', { n: Number(index) + 1 })}: `)
    .replace(/: $/, '')
}

/** `path` tells what a number is: `until` and `at` are moments. */
function textOf(value: unknown, path = ''): string {
  if (value === Number.MAX_SAFE_INTEGER) return t('never')
  if (typeof value === 'number' && value > 1e12 && /(^|\.)(until|at|\w+At)$/.test(path)) return dateTime(value)
  if (typeof value === 'number' && /(^|\.)forMs$/.test(path)) return duration(value)
  return typeof value === 'string' ? readableKey(keyText(value)) : JSON.stringify(value)
}
