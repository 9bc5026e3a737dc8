// A browser whose system has no locale (`LANG=C`, containers, kiosks) calls its language by a name that Intl refuses, and
// the charts ask Intl for it as soon as they are loaded: the page would stay empty. This comes before them.
try {
  new Intl.NumberFormat(navigator.language)
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en-US' })
}
