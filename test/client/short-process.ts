import { protect } from '@firebreak/client'
import { Redis } from 'ioredis'

// A script as users write them: it ends when its last connection does, whatever Firebreak has open.
const [port, hubUrl, path] = process.argv.slice(2)
const redis = protect(new Redis(Number(port)), {
  hubs: [hubUrl!],
  tableFile: false,
  diskTier: { path: path!, survivesRestart: true },
})
await redis.set('k', 'v')
await redis.get('k')
await redis.quit()
process.stdout.write('done\n')
