import { heardAt, link, overview } from '../data/live.ts'
import { timeOfDay } from '../format/format.ts'
import { t } from '../text/text.ts'

/** Stamps the figures with their time while the hub does not answer. */
export function LostHub() {
  if (link.value !== 'lost' || overview.value === undefined) return null
  return (
    <section class="lost-hub" role="alert">
      <p class="stamp">
        {t(
          'The hub does not answer. The figures below are from {time}; services keep using the last table they received. This page reconnects by itself.',
          { time: timeOfDay(heardAt.value) },
        )}
      </p>
    </section>
  )
}
