import { fileURLToPath } from 'node:url'

/** The folder of the built page, for the hub to serve; the same seen from the source and from what is built of it. */
export const pageFolder: string = fileURLToPath(new URL('../dist/site', import.meta.url))
