import { signal } from '@preact/signals'

/** The languages of the page. English is written where it is used; `zh.ts` has a line for each such text. */
export type Language = 'en' | 'zh'

export const languages: readonly Language[] = ['en', 'zh']

type Values = Readonly<Record<string, string | number>>

const stored = 'firebreak-language'
const chinese = signal<Readonly<Record<string, string>> | undefined>(undefined)

export const language = signal<Language>('en')

/** A text in the reader's language, with `{name}` replaced by the value of that name. */
export function t(english: string, values?: Values): string {
  const text = (language.value === 'zh' ? chinese.value?.[english] : undefined) ?? english
  return values === undefined
    ? text
    : text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole))
}

/** Changes the language and remembers it in this browser. The other language is loaded when it is first wanted. */
export async function setLanguage(next: Language): Promise<void> {
  if (next === 'zh' && chinese.value === undefined) chinese.value = (await import('./zh.ts')).zh
  language.value = next
  document.documentElement.lang = next === 'zh' ? 'zh-CN' : 'en'
  localStorage.setItem(stored, next)
}

/** The language that was chosen here before, else the browser's. */
export function initialLanguage(): Language {
  const chosen = localStorage.getItem(stored) ?? navigator.language
  return chosen.startsWith('zh') ? 'zh' : 'en'
}
