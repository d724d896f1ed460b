// The server of the contract of upstreams on stdio, of the stateless era.
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { createSdk2Server } from './sdk-2-tools.ts';
import { createWaits } from './waits.ts';

const waits = createWaits();
serveStdio(
  () => {
    const server = createSdk2Server(waits, {
      toolsChanged: () => server.sendToolListChanged(),
      resourceUpdated: (uri) => void server.server.sendResourceUpdated({ uri }),
    });
    return server;
  },
  { legacy: 'reject' },
);
