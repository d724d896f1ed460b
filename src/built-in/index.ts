// What this service offers. To add a tool, prompt or resource: one file here, and one line below.
import { createLocalCatalog } from 'postern/define';
import { greeting, serverConfig, servicePing, userContext, userProfile } from './entries.ts';

export const builtInCatalog = createLocalCatalog({
  tools: [servicePing],
  prompts: [greeting, userContext],
  resources: [serverConfig, userProfile],
});
