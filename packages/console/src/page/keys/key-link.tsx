import { readableKey } from '@firebreak/core'
import { cutMiddle } from '../format/cut-middle.ts'
import { keyAddress } from '../shell/route.ts'

/** A key's name that opens its page; a long one is cut in the middle and shown whole under the pointer. */
export function KeyLink({ redisClusterId, text }: { readonly redisClusterId: string; readonly text: string }) {
  const readable = readableKey(text)
  return (
    <a class="key-link" href={keyAddress(redisClusterId, text)} title={`${readable} on ${redisClusterId}`}>
      <code>{cutMiddle(readable)}</code>
    </a>
  )
}
