import type { AlarmView, AlertDelivery, AlertRouteView } from '@firebreak/core'
import { useState } from 'preact/hooks'
import { canAdminister, canOperate } from '../data/access.ts'
import { call } from '../data/api.ts'
import { useLoaded } from '../data/loaded.ts'
import { count } from '../format/format.ts'
import { Time } from '../format/time.tsx'
import { Alarms } from '../overview/alarms.tsx'
import { Confirm } from '../shell/dialog.tsx'
import { attempt } from '../shell/notices.tsx'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { RouteForm } from './route-form.tsx'

/** What is wrong, and who gets told? */
export function AlertsPage() {
  const alarms = useLoaded<{ alarms: AlarmView[] }>('/v1/alarms?all=true')
  const routes = useLoaded<{ routes: AlertRouteView[] }>('/v1/alert-routes', 5000)
  const deliveries = useLoaded<{ deliveries: AlertDelivery[] }>('/v1/alert-deliveries?limit=50', 3000)
  const all = alarms.value?.alarms ?? []
  const active = all.filter(({ state }) => state !== 'inactive')
  return (
    <>
      <section aria-label={t('Alerts')}>
        <h1>{t('Alerts')}</h1>
        {alarms.error !== undefined && <p class="problem">{alarms.error}</p>}
        {alarms.value !== undefined && (
          <p class="empty">
            {active.length === 0
              ? t('Nothing is broken.')
              : t('Alarms now: {n}, firing: {firing}; ended in the last day: {ended}', {
                  n: active.length,
                  firing: active.filter(({ state }) => state === 'firing').length,
                  ended: all.length - active.length,
                })}
          </p>
        )}
      </section>
      <Alarms alarms={active} onChange={alarms.reload} />
      <Ended alarms={all.filter(({ state }) => state === 'inactive')} />
      <Routes routes={routes.value?.routes} error={routes.error} onChange={routes.reload} onTest={deliveries.reload} />
      <section aria-label={t('Delivery log')}>
        <h2>{t('Delivery log')}</h2>
        <RecordTable
          label={t('Delivery log')}
          rows={deliveries.value?.deliveries}
          error={deliveries.error}
          id={({ at, route, alarmId, event }) => `${at} ${route} ${alarmId} ${event}`}
          empty={t('No notifications have been sent yet.')}
          columns={[
            { title: t('Time'), cell: ({ at }) => <Time at={at} />, isTight: true },
            { title: t('Route'), cell: ({ route }) => route },
            { title: t('Event'), cell: ({ event }) => t(event) },
            { title: t('Alarm'), cell: ({ alarmId }) => alarmId, isMinor: true },
            {
              title: t('Delivered'),
              cell: ({ isDelivered }) => (
                <span class={`state ${isDelivered ? 'handled' : 'unhandled'}`}>{isDelivered ? t('yes') : t('no')}</span>
              ),
            },
            { title: t('Tries'), cell: ({ tries }) => count(tries), isNumber: true },
            { title: t('Answer'), cell: ({ detail }) => detail, isMinor: true },
          ]}
        />
      </section>
    </>
  )
}

function Ended({ alarms }: { readonly alarms: readonly AlarmView[] }) {
  if (alarms.length === 0) return null
  return (
    <section aria-label={t('Ended')}>
      <h2>{t('Ended in the last day')}</h2>
      <RecordTable
        label={t('Ended')}
        rows={alarms}
        id={({ id, since }) => `${id} ${since}`}
        empty=""
        columns={[
          { title: t('Cause'), cell: ({ cause }) => cause },
          { title: t('Alarm'), cell: ({ id }) => <code>{id}</code>, isMinor: true },
          { title: t('Since'), cell: ({ since }) => <Time at={since} />, isTight: true },
          { title: t('Ended'), cell: ({ endedAt }) => (endedAt == null ? '–' : <Time at={endedAt} />), isTight: true },
          { title: t('Times'), cell: (alarm) => count(alarm.count), isNumber: true },
        ]}
      />
    </section>
  )
}

interface RoutesProps {
  readonly routes: readonly AlertRouteView[] | undefined
  readonly error: string | undefined
  readonly onChange: () => void
  readonly onTest: () => void
}

function Routes({ routes, error, onChange, onTest }: RoutesProps) {
  const [edited, setEdited] = useState<AlertRouteView | 'new'>()
  const [removed, setRemoved] = useState<string>()
  const test = async (name: string) => {
    const path = `/v1/alert-routes/${encodeURIComponent(name)}/test`
    await attempt(t('Sent to {name}.', { name }), async () => {
      const { isDelivered, detail } = await call<AlertDelivery>('POST', path)
      if (!isDelivered) throw new Error(t('Not delivered: {why}', { why: detail }))
    })
    onTest()
  }
  const remove = async (name: string) => {
    await attempt(t('Route {name} removed.', { name }), () =>
      call('DELETE', `/v1/alert-routes/${encodeURIComponent(name)}`),
    )
    onChange()
  }
  return (
    <section aria-label={t('Routes')}>
      <div class="card-head">
        <h2>{t('Routes: where alarms are sent')}</h2>
        {canAdminister.value && (
          <button type="button" onClick={() => setEdited('new')}>
            {t('New route')}
          </button>
        )}
      </div>
      <RecordTable
        label={t('Routes')}
        rows={routes}
        error={error}
        id={({ name }) => name}
        empty={t('No route: alarms are shown here and in the metrics only.')}
        columns={[
          { title: t('Route'), cell: ({ name }) => name },
          { title: t('Shape'), cell: ({ shape }) => shape },
          { title: t('Host'), cell: ({ host }) => <code>{host}</code>, isMinor: true },
          { title: t('From severity'), cell: ({ severity }) => t(severity) },
          { title: t('Alarms'), cell: ({ alarms }) => alarms.join(', ') || t('all'), isMinor: true },
          { title: t('On'), cell: ({ isEnabled }) => (isEnabled ? t('yes') : t('no')) },
          {
            title: '',
            cell: (route) => (
              <span class="tools">
                {canOperate.value && (
                  <button type="button" class="quiet" onClick={() => void test(route.name)}>
                    {t('Test')}
                  </button>
                )}
                {canAdminister.value && (
                  <>
                    <button type="button" class="quiet" onClick={() => setEdited(route)}>
                      {t('Edit')}
                    </button>
                    <button type="button" class="quiet" onClick={() => setRemoved(route.name)}>
                      {t('Remove')}
                    </button>
                  </>
                )}
              </span>
            ),
            isTight: true,
          },
        ]}
      />
      {removed !== undefined && (
        <Confirm
          title={t('Remove route {name}?', { name: removed })}
          text={t('Its address and secret are never shown, so it cannot be restored from here.')}
          action={t('Remove')}
          onConfirm={() => void remove(removed)}
          onClose={() => setRemoved(undefined)}
        />
      )}
      {edited !== undefined && (
        <RouteForm
          key={edited === 'new' ? '' : edited.name}
          before={edited === 'new' ? undefined : edited}
          names={routes?.map(({ name }) => name) ?? []}
          onClose={() => setEdited(undefined)}
          onSaved={onChange}
        />
      )}
    </section>
  )
}
