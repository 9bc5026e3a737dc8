import { useState } from 'preact/hooks'
import { canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { overview } from '../data/live.ts'
import { useLoaded } from '../data/loaded.ts'
import { count, percent, relative } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { Figure } from '../overview/verdict.tsx'
import { Confirm } from '../shell/dialog.tsx'
import { attempt } from '../shell/notices.tsx'
import { route } from '../shell/route.ts'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'

interface Voucher {
  readonly id: string
  readonly begin: number | null
  readonly end: number | null
  readonly stock: number
  readonly sold: number
  readonly total: number
  readonly perUser: number
  readonly buyers: number
  readonly unpaid: number
  readonly pending: number | null
  readonly waiting: number | null
  readonly deadLetters: number
}

interface SaleOrder {
  readonly entryId: string
  readonly at: number
  readonly kind: string
  readonly orderId: string
  readonly userId: string
  readonly state?: string
}

interface Letter {
  readonly id: string
  readonly deadAt: number
  readonly reason: string
  readonly cause?: string
  readonly fields: Readonly<Record<string, string>>
}

const command = 'firebreak hub --sale-redis redis://host:6379'

/** What sold, what is left, and which orders nobody could store. */
export function SalePage() {
  const { value, error, reload } = useLoaded<{ isKnown: boolean; vouchers: Voucher[] }>('/v1/sales')
  const vouchers = value?.vouchers ?? []
  const chosen = vouchers.find(({ id }) => id === route.value.query['voucher']) ?? vouchers[0]
  return (
    <>
      <section aria-label={t('Sale')}>
        <h1>{t('Sale')}</h1>
        {value?.isKnown === false ? (
          <p class="empty">
            {t('This hub has no sale. Start it with the Redis of one:')} <code>{command}</code>
          </p>
        ) : (
          <Vouchers vouchers={value?.vouchers} error={error} chosen={chosen?.id} />
        )}
      </section>
      {chosen !== undefined && <OneVoucher key={chosen.id} voucher={chosen} onChange={reload} />}
    </>
  )
}

interface VouchersProps {
  readonly vouchers: readonly Voucher[] | undefined
  readonly error: string | undefined
  readonly chosen: string | undefined
}

function Vouchers({ vouchers, error, chosen }: VouchersProps) {
  return (
    <RecordTable
      label={t('Vouchers')}
      rows={vouchers}
      error={error}
      id={({ id }) => id}
      empty={t('Nothing was ever on sale in this Redis.')}
      rowClass={({ id }) => (id === chosen ? 'is-chosen' : undefined)}
      columns={[
        {
          title: t('Voucher'),
          cell: ({ id }) => (
            <a href={`#/sale?voucher=${encodeURIComponent(id)}`} aria-current={id === chosen ? 'true' : undefined}>
              <code>{id}</code>
            </a>
          ),
        },
        { title: t('State'), cell: (voucher) => <SaleState of={voucher} /> },
        { title: t('Left'), cell: ({ stock, total }) => `${count(stock)} / ${count(total)}`, isNumber: true },
        {
          title: t('Sold'),
          cell: ({ sold, total }) => (
            <>
              {count(sold)}
              <progress max={Math.max(1, total)} value={sold} aria-label={percent(total === 0 ? 0 : sold / total)} />
            </>
          ),
          isNumber: true,
        },
        { title: t('Not paid yet'), cell: ({ unpaid }) => count(unpaid), isNumber: true, isMinor: true },
        {
          title: t('To be stored'),
          cell: ({ pending, waiting }) =>
            pending === null && waiting === null ? '–' : count((pending ?? 0) + (waiting ?? 0)),
          isNumber: true,
          isMinor: true,
        },
        {
          title: t('Dead letters'),
          cell: ({ deadLetters }) => (deadLetters === 0 ? '0' : <b class="problem">{count(deadLetters)}</b>),
          isNumber: true,
        },
      ]}
    />
  )
}

function SaleState({ of: { begin, end, stock } }: { readonly of: Voucher }) {
  const now = (overview.value?.hubTime ?? Date.now()) / 1000
  if (begin === null || end === null) return <span class="state unhandled">{t('its hours are missing')}</span>
  if (now < begin)
    return (
      <>
        <span class="state">{t('not begun')}</span>
        <small>{relative(begin * 1000, now * 1000)}</small>
      </>
    )
  if (now > end)
    return (
      <>
        <span class="state">{t('ended')}</span>
        <small>{relative(end * 1000, now * 1000)}</small>
      </>
    )
  return <span class={`state ${stock > 0 ? 'handled' : 'attention'}`}>{stock > 0 ? t('on sale') : t('sold out')}</span>
}

function OneVoucher({ voucher, onChange }: { readonly voucher: Voucher; readonly onChange: () => void }) {
  const path = `/v1/sales/${encodeURIComponent(voucher.id)}`
  const { value, error, reload } = useLoaded<{ orders: SaleOrder[]; letters: Letter[] }>(path)
  const { pending, waiting } = voucher
  return (
    <>
      <section aria-label={t('Voucher')}>
        <h2>
          <code>{voucher.id}</code>
        </h2>
        <dl class="figures">
          <Figure name={t('left')} value={count(voucher.stock)} />
          <Figure name={t('sold')} value={count(voucher.sold)} />
          <Figure name={t('buyers')} value={count(voucher.buyers)} />
          <Figure name={t('not paid yet')} value={count(voucher.unpaid)} />
          <Figure name={t('with a worker')} value={pending === null ? '–' : count(pending)} />
          <Figure name={t('waiting for a worker')} value={waiting === null ? '–' : count(waiting)} />
          <Figure name={t('for one user')} value={count(voucher.perUser)} />
        </dl>
        {pending === null && voucher.sold > 0 && (
          <p class="problem">{t('No worker has ever read these orders: start an OrderWorker.')}</p>
        )}
      </section>
      <Letters
        path={path}
        letters={value?.letters}
        error={error}
        onChange={() => {
          reload()
          onChange()
        }}
      />
      <section aria-label={t('Orders')}>
        <h2>{t('Last orders')}</h2>
        <RecordTable
          label={t('Orders')}
          rows={value?.orders}
          error={error}
          id={({ entryId }) => entryId}
          empty={t('No order yet.')}
          columns={[
            { title: t('Time'), cell: ({ at }) => <Time at={at} />, isTight: true },
            { title: t('Event'), cell: ({ kind }) => <span class="state">{t(kind)}</span> },
            { title: t('Order'), cell: ({ orderId }) => <code>{orderId}</code> },
            { title: t('User'), cell: ({ userId }) => userId, isMinor: true },
            { title: t('Now'), cell: ({ state }) => (state === undefined ? '–' : t(state)) },
          ]}
        />
      </section>
    </>
  )
}

interface LettersProps {
  readonly path: string
  readonly letters: readonly Letter[] | undefined
  readonly error: string | undefined
  readonly onChange: () => void
}

/** Orders that no worker could store, with the reason; each is stored after all, or dropped for good. */
function Letters({ path, letters, error, onChange }: LettersProps) {
  const [dropped, setDropped] = useState<Letter>()
  const settle = async (action: 'replay' | 'discard', ids: readonly string[], done: string) => {
    await attempt(done, () => call('POST', `${path}/dead-letters`, { ids, action }))
    onChange()
  }
  const replay = (ids: readonly string[]) => settle('replay', ids, t('Returned to the workers.'))
  return (
    <section aria-label={t('Dead letters')}>
      <div class="card-head">
        <h2>{t('Dead letters: orders that no worker could store')}</h2>
        {canOperate.value && letters !== undefined && letters.length > 1 && (
          <button type="button" onClick={() => void replay(letters.map(({ id }) => id))}>
            {t('Replay all {n}', { n: letters.length })}
          </button>
        )}
      </div>
      <RecordTable
        label={t('Dead letters')}
        rows={letters}
        error={error}
        id={({ id }) => id}
        empty={t('None: every order was stored.')}
        columns={[
          { title: t('Since'), cell: ({ deadAt }) => <Time at={deadAt} />, isTight: true },
          { title: t('Order'), cell: ({ fields }) => <code>{fields['order'] ?? '–'}</code> },
          { title: t('User'), cell: ({ fields }) => fields['user'] ?? '–', isMinor: true },
          {
            title: t('Why'),
            cell: ({ reason, cause }) => (
              <>
                {reason}
                {cause !== undefined && <small>{cause}</small>}
              </>
            ),
          },
          {
            title: '',
            cell: (letter) =>
              canOperate.value && (
                <span class="tools">
                  <button type="button" class="quiet" onClick={() => void replay([letter.id])}>
                    {t('Replay')}
                  </button>
                  <button type="button" class="quiet" onClick={() => setDropped(letter)}>
                    {t('Drop')}
                  </button>
                </span>
              ),
            isTight: true,
          },
        ]}
      />
      <p class="muted">
        {t('Fix the cause first: an order that fails again becomes a dead letter again, with the new reason.')}
      </p>
      {dropped !== undefined && (
        <Confirm
          title={t('Drop the order {order}?', { order: dropped.fields['order'] ?? dropped.id })}
          text={t('It is never stored, and this cannot be undone.')}
          action={t('Drop')}
          onConfirm={() => void settle('discard', [dropped.id], t('Dropped.'))}
          onClose={() => setDropped(undefined)}
        />
      )}
    </section>
  )
}
