import { useState } from 'preact/hooks'
import { signIn } from '../data/api.ts'
import { t } from '../text/text.ts'

/** Asks for a token, or a name and a password, where the hub wants to know who it is. */
export function SignIn() {
  const [problem, setProblem] = useState<string>()
  const [isByName, setByName] = useState(false)
  const send = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = new FormData(event.target as HTMLFormElement)
    const text = (name: string) => String(form.get(name) ?? '')
    try {
      await signIn(
        isByName ? { name: text('name').trim(), password: text('password') } : { token: text('token').trim() },
      )
    } catch (error) {
      setProblem((error as Error).message)
    }
  }
  return (
    <section>
      <h1>{t('Sign in to this hub')}</h1>
      <form class="fields" onSubmit={send}>
        {isByName ? (
          <>
            <label>
              {t('Name')} <input name="name" autocomplete="username" required />
            </label>
            <label>
              {t('Password')} <input name="password" type="password" autocomplete="current-password" required />
            </label>
          </>
        ) : (
          <label>
            {t('Token')} <input name="token" type="password" autocomplete="current-password" required />
          </label>
        )}
        <button type="submit" class="primary">
          {t('Sign in')}
        </button>
        <button type="button" onClick={() => setByName(!isByName)}>
          {isByName ? t('Use a token') : t('Use a name and password')}
        </button>
        {problem && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
      </form>
    </section>
  )
}
