// `npm run docs -- [--out FOLDER]`: builds README and docs/ as a static site that needs no server. Every page has
// navigation, search, a dark theme and a link to its other language. GitHub shows the same text.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Marked, Renderer } from 'marked'
import { root } from '../setup.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const repository = 'https://github.com/firebreak-redis/firebreak/blob/main'
const words = {
  en: { search: 'Search', none: 'Nothing found', contents: 'All pages', other: '中文', light: 'Light or dark' },
  zh: { search: '搜索', none: '没有找到', contents: '全部页面', other: 'English', light: '浅色或深色' },
}

/** The paths of the site's pages in the repository. */
export function sitePages() {
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file.replaceAll('\\', '/')}`)
  const front = ['README.md', 'README.zh.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', 'deploy/README.md']
  return [...front, ...docs.sort()].filter((page) => existsSync(join(root, page)))
}

/** `zh` for a page of docs/zh and the Chinese README. */
export function languageOf(page) {
  return page.startsWith('docs/zh/') || page.endsWith('.zh.md') ? 'zh' : 'en'
}

/** The same page in the other language, or undefined if there is none. */
export function otherLanguageOf(page) {
  const other =
    page === 'README.md'
      ? 'README.zh.md'
      : page === 'README.zh.md'
        ? 'README.md'
        : page.startsWith('docs/zh/')
          ? page.replace('docs/zh/', 'docs/')
          : page.replace('docs/', 'docs/zh/')
  return other !== page && existsSync(join(root, other)) ? other : undefined
}

const fileOf = (page) => (page === 'README.md' ? 'index.html' : page.replace(/\.md$/, '.html'))

/** The anchor of a heading, as GitHub makes it. */
function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')
}

const htmlOf = (text) =>
  text.replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign])
const plain = (html) =>
  html
    .replace(/<[^>]*>/g, '')
    .replace(/&(amp|lt|gt|quot|#39);/g, (_, name) => ({ amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" })[name])

/** The target of a page's link on the site: another page, a copied image, or the repository. */
function linkOf(page, href, pages) {
  if (/^(https?:|mailto:|#)/.test(href)) return href
  const [path, anchor] = href.split('#')
  const target = posix.normalize(posix.join(posix.dirname(page), path)).replace(/\/$/, '')
  const behind = anchor === undefined ? '' : `#${anchor}`
  const isImage = /\.(svg|png|webp)$/.test(target)
  if (!pages.includes(target) && !isImage) return `${repository}/${target}${behind}`
  const from = posix.dirname(fileOf(page))
  return `${posix.relative(from, isImage ? target : fileOf(target))}${behind}`
}

/** A page's body and headings, and its text by section for the search. */
function render(page, pages) {
  const renderer = new Renderer()
  const sections = [{ heading: '', anchor: '', text: '' }]
  const text = (html) => {
    sections.at(-1).text += ` ${plain(html)}`
    return html
  }
  const kept = {
    paragraph: renderer.paragraph,
    code: renderer.code,
    tablecell: renderer.tablecell,
    listitem: renderer.listitem,
  }
  renderer.heading = (html, level) => {
    const heading = plain(html)
    const anchor = anchorOf(heading)
    sections.push({ heading, anchor, text: '' })
    return `<h${level} id="${htmlOf(anchor)}"><a href="#${htmlOf(anchor)}">${html}</a></h${level}>\n`
  }
  renderer.paragraph = (html) => text(kept.paragraph.call(renderer, html))
  renderer.listitem = (html, ...rest) => text(kept.listitem.call(renderer, html, ...rest))
  renderer.tablecell = (html, flags) => text(kept.tablecell.call(renderer, html, flags))
  renderer.code = (code, info, isEscaped) => text(kept.code.call(renderer, code, info?.split(' ')[0], isEscaped))
  renderer.table = (head, body) =>
    `<div class="table"><table><thead>${head}</thead><tbody>${body}</tbody></table></div>\n`
  renderer.link = (href, _title, html) => `<a href="${htmlOf(linkOf(page, href, pages))}">${html}</a>`
  renderer.image = (href, _title, alt) =>
    `<img src="${htmlOf(linkOf(page, href, pages))}" alt="${htmlOf(alt)}" loading="lazy">`
  const source = readFileSync(join(root, page), 'utf8').replace(/^<!--[\s\S]*?-->\n/, '')
  const body = new Marked({ renderer }).parse(source)
  const title = sections.find(({ heading }) => heading !== '')?.heading ?? page
  return { page, title, body, sections: sections.filter(({ heading, text }) => heading !== '' || text.trim() !== '') }
}

/** The links in the tables of an index page, for the sidebar of every page. */
function navigationOf(index, pages) {
  const groups = []
  for (const line of readFileSync(join(root, index), 'utf8').split('\n')) {
    const heading = /^## (.+)$/.exec(line)?.[1]
    if (heading !== undefined) groups.push({ heading, links: [] })
    if (!line.startsWith('|')) continue
    for (const [, title, href] of line.matchAll(/\[([^\]]+)\]\(([^)#\s]+)\)/g)) {
      const target = posix.normalize(posix.join(posix.dirname(index), href))
      if (pages.includes(target)) groups.at(-1)?.links.push({ title, target })
    }
  }
  return groups.filter(({ links }) => links.length > 0)
}

function whole({ page, title, body }, navigation) {
  const language = languageOf(page)
  const say = words[language]
  const from = posix.dirname(fileOf(page))
  const to = (target) => htmlOf(posix.relative(from, target))
  const other = otherLanguageOf(page)
  const links = ({ heading, links: all }) =>
    `<section><h2>${htmlOf(heading)}</h2><ul>${all
      .map(
        (link) =>
          `<li><a href="${to(fileOf(link.target))}"${link.target === page ? ' aria-current="page"' : ''}>${htmlOf(link.title)}</a></li>`,
      )
      .join('')}</ul></section>`
  return `<!doctype html>
<html lang="${language === 'zh' ? 'zh-CN' : 'en'}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${htmlOf(title)} · Firebreak</title>
<link rel="stylesheet" href="${to('site/page.css')}">
<script src="${to('site/search.js')}" defer></script>
</head>
<body data-root="${to('.') || '.'}" data-none="${say.none}">
<header>
<a class="name" href="${to(language === 'zh' ? 'README.zh.html' : 'index.html')}">Firebreak</a>
<label class="search"><span>${say.search}</span><input type="search" placeholder="${say.search}" autocomplete="off"></label>
<button type="button" class="theme" aria-label="${say.light}">◐</button>
${other === undefined ? '' : `<a class="language" href="${to(fileOf(other))}" lang="${language === 'zh' ? 'en' : 'zh-CN'}">${say.other}</a>`}
</header>
<div class="results" hidden></div>
<div class="columns">
<nav aria-label="${say.contents}"><details open><summary>${say.contents}</summary>${navigation.map(links).join('')}</details></nav>
<main>
${body}
</main>
</div>
</body>
</html>
`
}

/** Builds the whole site into a folder and returns its files. */
export function buildSite(out) {
  const pages = sitePages()
  const rendered = pages.map((page) => render(page, pages))
  const navigations = { en: navigationOf('docs/README.md', pages), zh: [] }
  navigations.zh = existsSync(join(root, 'docs/zh/README.md'))
    ? navigationOf('docs/zh/README.md', pages)
    : navigations.en
  const files = []
  const write = (file, text) => {
    mkdirSync(dirname(join(out, file)), { recursive: true })
    writeFileSync(join(out, file), text)
    files.push(file)
  }
  for (const one of rendered) write(fileOf(one.page), whole(one, navigations[languageOf(one.page)]))
  const index = rendered.flatMap(({ page, title, sections }) =>
    sections.map(({ heading, anchor, text }) => ({
      file: fileOf(page) + (anchor === '' ? '' : `#${anchor}`),
      language: languageOf(page),
      title,
      heading,
      text: text.replace(/\s+/g, ' ').trim(),
    })),
  )
  // A script instead of a data file, so that it also loads from a folder without a server.
  write('site/search-index.js', `globalThis.firebreakIndex = ${JSON.stringify(index)}\n`)
  for (const file of ['page.css', 'search.js']) write(`site/${file}`, readFileSync(join(here, file), 'utf8'))
  for (const file of readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })) {
    if (!/\.(svg|png|webp)$/.test(file)) continue
    mkdirSync(dirname(join(out, 'docs', file)), { recursive: true })
    cpSync(join(root, 'docs', file), join(out, 'docs', file))
    files.push(`docs/${file}`)
  }
  return files
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const at = process.argv.indexOf('--out')
  const out = resolve(process.env.INIT_CWD ?? root, at < 0 ? 'site' : (process.argv[at + 1] ?? 'site'))
  const files = buildSite(out)
  process.stdout.write(`${files.length} files in ${out}; open ${join(out, 'index.html')}\n`)
}
