// What most tests call: the entries that the specification names, whatever else src/catalog offers.
import {
  greeting,
  serverConfig,
  servicePing,
  userContext,
  userProfile,
} from '../../../src/built-in/entries.ts';
import { createLocalCatalog } from '../../../src/index.ts';

export const specCatalog = createLocalCatalog({
  tools: [servicePing],
  prompts: [greeting, userContext],
  resources: [serverConfig, userProfile],
});
