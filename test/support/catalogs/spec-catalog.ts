// What most tests call: the entries that the specification names, whatever else src/catalog offers.
import { greeting } from '../../../src/built-in/greeting.ts';
import { serverConfig } from '../../../src/built-in/server-config.ts';
import { servicePing } from '../../../src/built-in/service-ping.ts';
import { userContext } from '../../../src/built-in/user-context.ts';
import { userProfile } from '../../../src/built-in/user-profile.ts';
import { createLocalCatalog } from '../../../src/index.ts';

export const specCatalog = createLocalCatalog({
  tools: [servicePing],
  prompts: [greeting, userContext],
  resources: [serverConfig, userProfile],
});
