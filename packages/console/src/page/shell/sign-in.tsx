import { useState } from 'preact/hooks'
import { isTokenWanted, useToken } from '../data/access.ts'
import { call } from '../data/api.ts'

/** Asks for a token where the hub wants one. */
export function SignIn() {
  const [problem, setProblem] = useState<string>()
  const send = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = new FormData(event.target as HTMLFormElement)
    useToken(String(form.get('token')).trim())
    try {
      await call('GET', '/v1/overview')
      isTokenWanted.value = false
    } catch (error) {
      setProblem((error as Error).message)
    }
  }
  return (
    <section>
      <h2>This hub wants a token</h2>
      <form class="fields" onSubmit={send}>
        <label>
          Token <input name="token" type="password" autocomplete="current-password" required />
        </label>
        <button type="submit" class="primary">
          Sign in
        </button>
        {problem && <p class="problem">{problem}</p>}
      </form>
    </section>
  )
}
