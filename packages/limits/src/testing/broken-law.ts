/** A law of limits does not hold. */
export class BrokenLaw extends Error {}
