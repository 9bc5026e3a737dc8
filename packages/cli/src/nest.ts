export {
  type FirebreakAsyncOptions,
  type FirebreakDynamicModule,
  FirebreakModule,
  firebreakToken,
} from '@firebreak/client/nest'
