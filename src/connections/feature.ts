// §24 as the gateway opens it: users' connections to servers, in broker mode.
import type { FoundPeople } from '../http/endpoint/admin-people.ts';
import type { GrantReader } from '../http/endpoint/grants.ts';
import type { OwnPages } from '../http/endpoint/own-pages.ts';
import { defineFeature } from '../mcp/feature.ts';
import type { ServedFile } from '../mcp/upstream/served-file.ts';

import { createConnections, type GatewayConnections } from './create-connections.ts';
import { createConnectionEndpoints } from './pages/connection-endpoints.ts';
import { createConnectionPanels } from './pages/connection-panels.ts';

interface ConnectionNeeds {
  readonly servedFile: ServedFile;
  readonly ownTokens: { readonly grants: GrantReader } | undefined;
  readonly operated: FoundPeople | undefined;
}

export const connections = defineFeature({
  name: 'connections',
  open(runtime, { servedFile, ownTokens, operated }: ConnectionNeeds) {
    const opened = createConnections(runtime, servedFile.listConnectionServers);
    return {
      gives: { connections: opened },
      ...(operated && {
        panels: createConnectionPanels(operated, opened?.operated, ownTokens?.grants),
      }),
      ...(opened && { gauges: { connections: opened.count }, close: opened.close }),
    };
  },
});

interface ConnectionPageNeeds {
  readonly connections: GatewayConnections | undefined;
  readonly ownPages: OwnPages | undefined;
  readonly servedFile: ServedFile;
}

/** Where users connect servers, and see what they have connected. */
export const connectionPages = defineFeature({
  name: 'pages of connections',
  open: (runtime, { connections: opened, ownPages, servedFile }: ConnectionPageNeeds) => ({
    gives: {},
    ...(opened &&
      ownPages && {
        endpoints: createConnectionEndpoints(
          runtime,
          ownPages,
          opened,
          servedFile.listConnectionServers,
        ),
      }),
  }),
});
