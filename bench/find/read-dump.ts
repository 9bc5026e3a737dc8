// Reads one dump and prints how long that took and the peak memory of the whole process.
import { readRdbFile } from '@firebreak/find'

const startedAt = performance.now()
const { seen, error } = await readRdbFile(process.argv[2]!)
if (error !== undefined) throw error
const seconds = (performance.now() - startedAt) / 1000
process.stdout.write(JSON.stringify({ seconds, rssMb: process.resourceUsage().maxRSS / 1024, keys: seen }))
