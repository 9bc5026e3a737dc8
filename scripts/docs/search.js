// The search, and the switch between light and dark. Every page loads this; the index is loaded when somebody starts typing.
;(() => {
  /** The sections that contain every word, matches in titles first; at most 20. */
  function find(index, query, language) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean)
    if (words.length === 0) return []
    const scored = []
    for (const section of index) {
      const [title, heading, text] = [section.title, section.heading, section.text].map((part) => part.toLowerCase())
      let score = section.language === language ? 1 : 0
      const hasAll = words.every((word) => {
        if (title.includes(word)) score += 8
        if (heading.includes(word)) score += 6
        if (text.includes(word)) score += 1
        return title.includes(word) || heading.includes(word) || text.includes(word)
      })
      if (hasAll) scored.push({ section, score })
    }
    return scored
      .sort((a, b) => b.score - a.score)
      .slice(0, 20)
      .map(({ section }) => section)
  }
  globalThis.firebreakFind = find
  if (typeof document === 'undefined') return

  const { root, none } = document.body.dataset
  const input = document.querySelector('input[type=search]')
  const results = document.querySelector('.results')
  let loading
  const load = () => {
    loading ??= new Promise((resolve, reject) => {
      const script = document.createElement('script')
      script.src = `${root}/site/search-index.js`
      script.onload = () => resolve(globalThis.firebreakIndex)
      script.onerror = reject
      document.head.append(script)
    })
    return loading
  }
  const show = (found, query) => {
    results.replaceChildren(
      ...found.map(({ file, title, heading, text }) => {
        const link = document.createElement('a')
        link.href = `${root}/${file}`
        const name = document.createElement('strong')
        name.textContent = heading === '' || heading === title ? title : `${title} › ${heading}`
        const at = Math.max(0, text.toLowerCase().indexOf(query.toLowerCase().split(/\s+/)[0]) - 40)
        const piece = document.createElement('span')
        piece.textContent = text.slice(at, at + 160)
        link.append(name, piece)
        return link
      }),
    )
    if (found.length === 0) results.textContent = none
    results.hidden = query.trim() === ''
  }
  input.addEventListener('input', async () => {
    const query = input.value
    const index = await load()
    if (query === input.value) show(find(index, query, document.documentElement.lang.slice(0, 2)), query)
  })
  document.addEventListener('keydown', (event) => {
    if (event.key === '/' && document.activeElement !== input) {
      event.preventDefault()
      input.focus()
    } else if (event.key === 'Escape') {
      results.hidden = true
      input.blur()
    }
  })

  const apply = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme
  }
  apply(localStorage.getItem('theme'))
  document.querySelector('.theme').addEventListener('click', () => {
    const isDark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === 'dark'
      : matchMedia('(prefers-color-scheme: dark)').matches
    const theme = isDark ? 'light' : 'dark'
    localStorage.setItem('theme', theme)
    apply(theme)
  })
  if (matchMedia('(max-width: 800px)').matches) document.querySelector('nav details').open = false
})()
