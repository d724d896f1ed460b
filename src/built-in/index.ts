// What this service offers. A tool, prompt or resource of yours: one file here, one line below.
import { createLocalCatalog } from 'postern/define';
import { greeting } from './greeting.ts';
import { serverConfig } from './server-config.ts';
import { servicePing } from './service-ping.ts';
import { userContext } from './user-context.ts';
import { userProfile } from './user-profile.ts';

export const builtInCatalog = createLocalCatalog({
  tools: [servicePing],
  prompts: [greeting, userContext],
  resources: [serverConfig, userProfile],
});
