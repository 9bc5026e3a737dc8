/** Characters of a key that are shown in a table; both ends, which tell keys apart better than the middle. */
export const shownKeyLength = 48

/** A text of at most `length` characters: a longer one loses its middle. A character is never cut in two. */
export function cutMiddle(text: string, length: number = shownKeyLength): string {
  const characters = [...text]
  if (characters.length <= length) return text
  const head = Math.ceil((length - 1) / 2)
  const tail = length - 1 - head
  return `${characters.slice(0, head).join('')}…${tail === 0 ? '' : characters.slice(-tail).join('')}`
}
