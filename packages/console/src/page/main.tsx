import './format/known-language.ts'
import { render } from 'preact'
import { connectLive } from './data/live.ts'
import { Shell } from './shell/shell.tsx'

connectLive()
render(<Shell />, document.getElementById('page')!)
