/** A law of locks does not hold. */
export class BrokenLaw extends Error {}
