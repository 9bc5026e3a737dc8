import { useEffect } from 'preact/hooks'
import { isSignInWanted, signedIn } from '../data/access.ts'
import { loadSession, signOut } from '../data/api.ts'
import { t } from '../text/text.ts'

/** Ends the session of this browser; not shown where there is none. */
export function SignOut() {
  const isWanted = isSignInWanted.value
  useEffect(() => {
    if (!isWanted) loadSession().catch(() => {})
  }, [isWanted])
  if (isWanted || signedIn.value?.canSignOut !== true) return null
  return (
    <button type="button" title={t('signed in as {name}', { name: signedIn.value.who })} onClick={() => void signOut()}>
      {t('Sign out')}
    </button>
  )
}
