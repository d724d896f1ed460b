// What most tests call: the entries that the specification names, whatever else src/catalog offers.
import { greeting } from '../../../src/catalog/greeting.ts';
import { serverConfig } from '../../../src/catalog/server-config.ts';
import { servicePing } from '../../../src/catalog/service-ping.ts';
import { userContext } from '../../../src/catalog/user-context.ts';
import { userProfile } from '../../../src/catalog/user-profile.ts';
import { createLocalCatalog } from '../../../src/index.ts';

export const specCatalog = createLocalCatalog({
  tools: [servicePing],
  prompts: [greeting, userContext],
  resources: [serverConfig, userProfile],
});
