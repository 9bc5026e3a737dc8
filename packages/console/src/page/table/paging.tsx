import { count } from '../format/format.ts'
import { setQuery } from '../shell/route.ts'
import { t } from '../text/text.ts'

interface PagingProps {
  /** The setting of the address that has the page, from 0. */
  readonly name: string
  readonly page: number
  readonly size: number
  readonly total: number
  /** What there is, where it fits on one page. */
  readonly alone: string
}

/** Which part of a long list is shown, and the way to the others. */
export function Paging({ name, page, size, total, alone }: PagingProps) {
  if (total <= size && page === 0) return <p class="paging">{alone}</p>
  const to = (next: number) => setQuery({ [name]: next <= 0 ? '' : String(next) })
  const offset = page * size
  return (
    <p class="paging">
      <button type="button" disabled={page === 0} onClick={() => to(page - 1)}>
        {t('Back')}
      </button>
      <span>
        {t('{from}–{to} of {total}', {
          from: count(Math.min(total, offset + 1)),
          to: count(Math.min(total, offset + size)),
          total: count(total),
        })}
      </span>
      <button type="button" disabled={offset + size >= total} onClick={() => to(page + 1)}>
        {t('Next')}
      </button>
    </p>
  )
}

/** The page that the address names, from 0. */
export function pageIn(text: string | undefined): number {
  return Math.max(0, Math.trunc(Number(text ?? 0)) || 0)
}
