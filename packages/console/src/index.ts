import { fileURLToPath } from 'node:url'

/** The folder of the built page, for the hub to serve. */
export const pageFolder: string = fileURLToPath(new URL('../dist/page', import.meta.url))
