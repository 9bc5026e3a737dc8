import { writeFileSync } from 'node:fs'
import { answersFile, writtenAnswers } from './answer-schemas.ts'
import { cliPage, writtenCliPage } from './cli-page.ts'
import { eventsPage, writtenEventsPage } from './events-page.ts'
import { licencesPage, writtenLicencesPage } from './licences-page.ts'
import { metricsPage, writtenMetricsPage } from './metrics-page.ts'
import { settingsPage, writtenSettingsPage } from './settings-pages.ts'

// `npm run references`: writes the generated reference pages, and the generated parts of others.
writeFileSync(settingsPage, writtenSettingsPage())
writeFileSync(licencesPage, writtenLicencesPage())
writeFileSync(cliPage, await writtenCliPage())
writeFileSync(eventsPage, writtenEventsPage())
writeFileSync(answersFile, await writtenAnswers())
writeFileSync(metricsPage, await writtenMetricsPage())
