// What this service offers. A tool, prompt or resource of yours: one file here, one line below.
import { createLocalCatalog } from 'postern/define';
import { greeting, serverConfig, servicePing, userContext, userProfile } from './entries.ts';

export const builtInCatalog = createLocalCatalog({
  tools: [servicePing],
  prompts: [greeting, userContext],
  resources: [serverConfig, userProfile],
});
