import type { FuzzTarget } from '../target.ts'

/** A parser with a fault behind three conditions, which shows that the search finds one. It only runs when it is named. */
export const selfCheckTarget: FuzzTarget = {
  name: 'self-check',
  words: ['ab'],
  seeds: () => [Buffer.from('a plain text: 12')],
  run(input) {
    const at = input.indexOf('ab')
    if (at >= 0 && input[at + 2] === 0x7b) throw new TypeError('not one of ours')
  },
}
