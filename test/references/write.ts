import { writeFileSync } from 'node:fs'
import { settingsPage, writtenSettingsPage } from './settings-pages.ts'

// `npm run references`: writes the generated parts of the reference pages.
writeFileSync(settingsPage, writtenSettingsPage())
