/** True when an argument equals `word` (given in lower case), in any case. */
export function isWord(argument: Uint8Array, word: string): boolean {
  return argument.length === word.length && Buffer.from(argument).toString('latin1').toLowerCase() === word
}

/** The whole number that an argument spells, as Redis reads it, or undefined. */
export function integerIn(argument: Uint8Array): number | undefined {
  const text = Buffer.from(argument).toString('latin1')
  if (!/^(0|-?[1-9]\d{0,17})$/.test(text)) return undefined
  return Number(text)
}
