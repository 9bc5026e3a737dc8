import { heardAt, link, overview } from '../data/live.ts'
import { timeOfDay } from '../format/format.ts'

/** Stamps the figures with their time while the hub does not answer. */
export function LostHub() {
  if (link.value !== 'lost' || overview.value === undefined) return null
  return (
    <section class="lost-hub" role="alert">
      <p class="stamp">
        The hub does not answer. The figures below are those of <b>{timeOfDay(heardAt.value)}</b>; services go on with
        what they were told last. This page reconnects by itself.
      </p>
    </section>
  )
}
