/** The version of every package; `test/house.test.ts` checks that their manifests agree. */
export const version = '0.1.0'
