import { computed, signal } from '@preact/signals'

/** Who is signed in here, as the hub says. */
export interface SignedIn {
  readonly who: string
  readonly role: string
  /** Goes with every change: a page of another site cannot read it. */
  readonly csrf?: string
  /** False where there is no session that could be ended: a hub without tokens, or a proxy before it that signs people in. */
  readonly canSignOut?: boolean
}

/** True while the hub wants somebody to sign in. */
export const isSignInWanted = signal(false)

/** Undefined before the hub was asked, and where nobody is signed in. The session itself is a cookie that no script sees. */
export const signedIn = signal<SignedIn | undefined>(undefined)

/** Whether changes are offered; the hub checks every one of them again. */
export const canOperate = computed(() => mayOperate(signedIn.value))

/** Whether people, tokens and what is kept can be changed. */
export const canAdminister = computed(() => signedIn.value?.role === 'admin')

export function mayOperate(person: SignedIn | undefined): boolean {
  return person?.role === 'operator' || person?.role === 'admin'
}

/** What a change carries. */
export function csrfHeader(): Record<string, string> {
  const csrf = signedIn.value?.csrf
  return csrf === undefined ? {} : { 'firebreak-csrf': csrf }
}
