import { parseKeyText, readableKey } from '@firebreak/core'
import { overview } from '../data/live.ts'
import { cutMiddle } from '../format/cut-middle.ts'
import { keyAddress } from '../shell/route.ts'
import { t } from '../text/text.ts'

interface KeyLinkProps {
  readonly redisClusterId: string
  readonly text: string
  /** Always name the cluster. @default only where keys of several clusters are shown */
  readonly hasCluster?: boolean
}

/** A key's name that opens its page; a long one is cut in the middle and shown whole under the pointer. */
export function KeyLink({ redisClusterId, text, hasCluster = areSeveralClusters() }: KeyLinkProps) {
  return (
    <a class="key-link" href={keyAddress(redisClusterId, text)} title={`${readableKey(text)} · ${redisClusterId}`}>
      <KeyName text={text} />
      {hasCluster && <span class="cluster">{redisClusterId}</span>}
    </a>
  )
}

/** A key as what it is: blank ones are named, what cannot be shown is escaped and marked as binary. */
export function KeyName({ text, length }: { readonly text: string; readonly length?: number }) {
  const readable = readableKey(text)
  if (readable.trim() === '') return <code class="odd">{readable === '' ? t('(empty key)') : `“${readable}”`}</code>
  const isBinary = parseKeyText(text)?.startsWith('\0b') === true
  return (
    <>
      <code>{cutMiddle(readable, length)}</code>
      {isBinary && <span class="cluster">{t('binary')}</span>}
    </>
  )
}

/** Clusters of which this page has heard: keys of the past may be of one that has none in use now. */
const clusters = new Set<string>()
const maxClusters = 100

function areSeveralClusters(): boolean {
  for (const { redisClusterId } of overview.value?.keys ?? []) {
    if (clusters.size < maxClusters) clusters.add(redisClusterId)
  }
  return clusters.size > 1
}
