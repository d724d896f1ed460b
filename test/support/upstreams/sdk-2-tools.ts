// What the contract of upstreams asks of a server of the stateless era, by the official SDK 2.x.
import { inputRequired, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Waits } from './waits.ts';

const said = (text: string) => ({ content: [{ type: 'text' as const, text }] });

export interface Sdk2Changes {
  toolsChanged(): void;
  resourceUpdated(uri: string): void;
}

/** One for each request, or process. */
export function createSdk2Server(waits: Waits, changes: Sdk2Changes): McpServer {
  const server = new McpServer(
    { name: 'contract-2', version: '2.0.0' },
    {
      capabilities: {
        logging: {},
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
      },
      instructions: 'Call echo.',
    },
  );
  server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) }, ({ text }) =>
    said(text),
  );
  server.registerTool('progress', {}, async ({ mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [1, 2, 3]) {
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 3 },
      });
    }
    return said(progressToken === undefined ? 'without' : 'done');
  });
  server.registerTool('log', {}, async ({ mcpReq }) => {
    await mcpReq.log('info', 'logged');
    return said('done');
  });
  server.registerTool('ask', {}, ({ mcpReq }) => {
    const answer = mcpReq.inputResponses?.colour;
    if (answer !== undefined) return said(JSON.stringify(answer));
    return inputRequired({
      inputRequests: {
        colour: inputRequired.elicit({
          message: 'Which colour?',
          requestedSchema: z.object({ colour: z.string() }),
        }),
      },
    });
  });
  server.registerTool('wait', {}, async ({ mcpReq }) => {
    await waits.wait(mcpReq.signal);
    return said('waited');
  });
  server.registerTool('waits', {}, () => said(JSON.stringify(waits.count())));
  server.registerTool('change', {}, () => {
    changes.toolsChanged();
    changes.resourceUpdated('test://changing');
    return said('changed');
  });
  server.registerResource('changing', 'test://changing', {}, (uri) => ({
    contents: [{ uri: uri.href, text: 'x' }],
  }));
  return server;
}
