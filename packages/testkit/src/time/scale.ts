/** True in `npm run test:full`, which runs the exact counts and soaks. */
export const isFullRun: boolean = process.env['FIREBREAK_FULL'] === '1'

/** A count for `npm test`, or the exact one for `npm run test:full`. */
export function scale(quick: number, full: number): number {
  return isFullRun ? full : quick
}
