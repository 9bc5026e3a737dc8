const offWords = ['off', '0', 'false', 'no']
const onWords = ['', 'on', '1', 'true', 'yes']
const warned = new Set<string>()

/** Whether `FIREBREAK=off` leaves this process unprotected. A word that is neither is told once, and leaves it protected. */
export function isOffByEnvironment(env: NodeJS.ProcessEnv = process.env): boolean {
  const word = (env['FIREBREAK'] ?? '').trim().toLowerCase()
  if (offWords.includes(word)) return true
  if (!onWords.includes(word) && !warned.has(word)) {
    warned.add(word)
    const message = `FIREBREAK is ${JSON.stringify(word.slice(0, 40))}, which is neither on nor off; protection stays on. To switch it off, set it to off`
    process.emitWarning(message, { type: 'FirebreakWarning', code: 'FB_OPTION_INVALID' })
  }
  return false
}
