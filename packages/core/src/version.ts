/** The version of every package; `test/house.test.ts` holds it to their manifests. */
export const version = '0.1.0'
