// `npm run screenshots [-- FOLDER]`: a picture of every page, light and dark, with rich traffic, and an animation of a key
// that becomes hot, into docs/images/console. FIREBREAK_SCREENSHOTS_PNG=FOLDER leaves PNGs too, of more pages, to look at.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import type { Page } from 'playwright-core'
import { type AnimationFrame, animatedWebp } from './animated-webp.ts'
import { pageNames, startBrowser } from './browser.ts'
import { bigKeys, policy, startBusyHub } from './busy-hub.ts'

const folder = process.argv[2] ?? join(import.meta.dirname, '..', '..', 'docs', 'images', 'console')
const warmUpMs = Number(process.env['FIREBREAK_SCREENSHOTS_WARM_UP_MS'] ?? 90_000)
const pngFolder = process.env['FIREBREAK_SCREENSHOTS_PNG']
const only = process.env['FIREBREAK_SCREENSHOTS_ONLY']?.split(',')
const wide = { width: 1280, height: 800 }
const phone = { width: 390, height: 844 }
const quality = 0.72

mkdirSync(folder, { recursive: true })
if (pngFolder !== undefined) mkdirSync(pngFolder, { recursive: true })
const busy = await startBusyHub()
const browser = await startBrowser()
try {
  await prepare()
  // A canvas of this one turns pictures into small files.
  const studio = await browser.newPage()
  const page = await browser.newPage({ locale: 'en-US', viewport: wide, reducedMotion: 'reduce' })
  page.setDefaultTimeout(180_000)
  await page.goto(`${busy.hub.url}/#/overview`)
  const started = Date.now()
  await waitFor(() => Date.now() - started > warmUpMs, { timeoutMs: warmUpMs * 2 })
  if (only === undefined || only.includes('animation')) await animation(page, studio)
  for (const theme of ['light', 'dark'] as const) {
    await useTheme(page, theme)
    for (const name of pageNames) {
      // What was before the hub began is an empty field: these two show what there is.
      const isOfPast = name === 'heat' || name === 'timeline'
      const period = isOfPast ? `?from=${started}&to=${Date.now()}` : ''
      await picture(page, studio, `${name}-${theme}`, `#/${name}${period}`)
    }
    const keyPage = '#/key/main/product%253A101'
    await picture(page, studio, `key-${theme}`, keyPage, 'button:text-is("Limit")')
    await picture(page, studio, `rule-${theme}`, '#/rules?edit=feed')
    await picture(page, studio, `prefixes-${theme}`, '#/keys?by=prefix')
  }
  await page.setViewportSize(phone)
  for (const name of pageNames) {
    if (pngFolder !== undefined || name === 'overview' || name === 'keys')
      await picture(page, studio, `${name}-phone`, `#/${name}`)
  }
} finally {
  await browser.close()
  await busy.close()
}

/** What people and services have done before the pictures are taken. */
async function prepare(): Promise<void> {
  await busy.api('POST', '/v1/limits/policy', policy)
  for (let call = 0; call < 40; call++)
    await busy.api('POST', '/v1/limits/browse', { uid: String(call % 5), _writeThrough: 'yes' })
  await busy.api('POST', '/v1/findings', bigKeys())
  await busy.api('PUT', '/v1/rules/stock', { prefix: 'stock:', threshold: 500 })
  await busy.api('PUT', '/v1/rules/stock', { prefix: 'stock:', threshold: 800, mode: 'shadow' })
  await busy.api('PUT', '/v1/alert-routes/on-call', {
    shape: 'slack',
    url: 'http://127.0.0.1:9/hook',
    isEnabled: false,
  })
  await busy.api('PUT', '/v1/rules/by-load', { prefix: 'feed:', threshold: 'auto', mode: 'shadow' })
  const opening = { redisClusterId: 'main', keys: ['product:100..120'], cron: '58 9 * * fri', forMs: 1_800_000 }
  await busy.api('POST', '/v1/prewarm', { ...opening, timeZone: 'Asia/Shanghai' })
  await addBigKeys()
  await busy.api('POST', '/v1/finders', { kind: 'big', redisClusterId: 'main' })
  for (const order of ['order-901', 'order-902']) await busy.shop.bury(order)
  busy.burst('product:101', 400)
}

/** What a search for big keys is to find, under several prefixes. */
async function addBigKeys(): Promise<void> {
  const redis = new Redis(busy.server.port)
  const text = (length: number) => 'x'.repeat(length)
  const line = redis.pipeline()
  for (let item = 0; item < 9000; item++) line.rpush('feed:home', `post ${item} ${text(60)}`)
  for (let field = 0; field < 6000; field++) line.hset('user:index', `user-${field}`, text(50))
  for (let member = 0; member < 7000; member++) line.zadd('board:week', member, `player-${member}`)
  for (let member = 0; member < 5500; member++) line.sadd('followers:star', `follower-${member}`)
  for (let page = 0; page < 6; page++) line.set(`page:rendered:${page}`, text(160_000 - page * 20_000))
  line.set('report:2026-11', text(420_000))
  await line.exec()
  redis.disconnect()
}

/** A key that nobody knows takes the load within seconds, and is answered from memory. */
async function animation(page: Page, studio: Page): Promise<void> {
  await useTheme(page, 'light')
  const frames: AnimationFrame[] = []
  const frameCount = 16
  const scale = 0.65
  for (let frame = 0; frame < frameCount; frame++) {
    if (frame === 2) busy.burst('product:viral', 1600)
    const png = await page.screenshot({ scale: 'css', clip: { x: 0, y: 0, ...wide } })
    frames.push({ webp: await toWebp(studio, png, 0.4, scale), shownMs: frame === frameCount - 1 ? 3000 : 400 })
    await page.waitForTimeout(500)
  }
  writeFileSync(join(folder, 'key-becomes-hot.webp'), animatedWebp(frames, wide.width * scale, wide.height * scale))
  busy.burst('product:viral', 0)
}

async function useTheme(page: Page, theme: 'light' | 'dark'): Promise<void> {
  await page.evaluate(`localStorage.setItem('firebreak-theme', '${theme}')`)
  await page.goto('about:blank')
  await page.goto(`${busy.hub.url}/#/overview`)
  await page.locator('.verdict h1').waitFor()
}

async function picture(page: Page, studio: Page, name: string, address: string, press?: string): Promise<void> {
  if (only !== undefined && !only.some((one) => name.startsWith(one))) return
  await page.evaluate(`location.hash = ${JSON.stringify(address)}`)
  await page.locator('main .empty', { hasText: 'Loading …' }).first().waitFor({ state: 'detached' })
  if (press !== undefined) {
    await page.locator(press).first().click()
    await page.locator('.preview-text', { hasText: 'In the last' }).waitFor()
  }
  // Charts and live figures of a second.
  await page.waitForTimeout(1500)
  const png = await page.screenshot({ scale: 'css', timeout: 180_000 })
  if (pngFolder !== undefined) writeFileSync(join(pngFolder, `${name}.png`), png)
  const isKept = !name.endsWith('-phone') || name.startsWith('overview') || name.startsWith('keys')
  if (isKept) writeFileSync(join(folder, `${name}.webp`), await toWebp(studio, png, quality))
}

/** The same picture as a WebP, drawn smaller where `scale` is below 1. */
async function toWebp(studio: Page, png: Buffer, webpQuality: number, scale = 1): Promise<Buffer> {
  const url = await studio.evaluate(`(async () => {
    const image = new Image()
    image.src = 'data:image/png;base64,${png.toString('base64')}'
    await image.decode()
    const canvas = document.createElement('canvas')
    canvas.width = Math.round(image.width * ${scale})
    canvas.height = Math.round(image.height * ${scale})
    const context = canvas.getContext('2d')
    context.imageSmoothingQuality = 'high'
    context.drawImage(image, 0, 0, canvas.width, canvas.height)
    return canvas.toDataURL('image/webp', ${webpQuality})
  })()`)
  return Buffer.from(String(url).split(',')[1]!, 'base64')
}
