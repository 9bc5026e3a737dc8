import './format/known-language.ts'
import { Component, render } from 'preact'
import { guardDrafts } from './data/drafts.ts'
import { connectLive } from './data/live.ts'
import { listenToKeyboard } from './shell/keyboard.ts'
import { loadMorePages } from './shell/pages.ts'
import { Shell } from './shell/shell.tsx'
import { applyTheme } from './shell/theme.ts'
import { initialLanguage, setLanguage } from './text/text.ts'

// Signals let components whose properties are the same skip a rendering. Preact then moves the children that it keeps to the
// new tree while the old one still points at them, and every tree of the past stays alive: a page left open grew by 300 nodes
// a second (test/console/many-keys.test.ts). Without it each update renders what it shows, which is a page of 50 rows.
delete Component.prototype.shouldComponentUpdate

applyTheme()
listenToKeyboard()
guardDrafts()
await setLanguage(initialLanguage())
connectLive()
render(<Shell />, document.getElementById('page')!)
void loadMorePages()
