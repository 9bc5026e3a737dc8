import { t } from '../text/text.ts'
import { notify } from './notices.tsx'

/** Puts a text on the clipboard. A page that came over plain HTTP from another machine has none: then it says so. */
export function CopyButton({ text }: { readonly text: string }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      notify({ text: t('Copied: {text}', { text }) })
    } catch {
      notify({ text: t('This browser does not let the page copy; select the text and copy it.'), isProblem: true })
    }
  }
  return (
    <button type="button" class="quiet" onClick={() => void copy()}>
      {t('Copy the command')}
    </button>
  )
}
