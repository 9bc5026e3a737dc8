/** Characters that a terminal draws two columns wide: East Asian wide and full-width ones, and emoji. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u
/** Characters that combine with the previous one. */
const combining = /\p{Mn}|\u200d|\ufe0f/u

/** How many terminal columns a text takes. */
export function widthOf(text: string): number {
  let width = 0
  for (const sign of text) width += columnsOf(sign)
  return width
}

/** Cuts a text to at most `width` columns, with … if something is missing. */
export function cutText(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let [kept, taken] = ['', 0]
  for (const sign of text) {
    taken += columnsOf(sign)
    if (taken > width - 1) break
    kept += sign
  }
  return `${kept}…`
}

/** Like `cutText`, but a long text loses its middle: keys differ at their ends. */
export function cutMiddle(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  const tailWidth = Math.floor((width - 1) / 2)
  let [tail, taken] = ['', 0]
  for (const sign of [...text].reverse()) {
    taken += columnsOf(sign)
    if (taken > tailWidth) break
    tail = sign + tail
  }
  return cutText(text, width - widthOf(tail)) + tail
}

/** A text of exactly `width` columns. */
export function fitText(text: string, width: number, cut = cutText): string {
  const shown = cut(text, width)
  return shown + ' '.repeat(width - widthOf(shown))
}

function columnsOf(sign: string): number {
  if (sign < '\u0300') return 1
  return combining.test(sign) ? 0 : wide.test(sign) ? 2 : 1
}
