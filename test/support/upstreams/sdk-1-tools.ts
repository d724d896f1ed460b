// What the contract of upstreams asks of a server of the session era, by the official SDK 1.x.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  SetLevelRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import type { Waits } from './waits.ts';

const said = (text: string) => ({ content: [{ type: 'text' as const, text }] });

/** One for each session, or process. */
export function createSdk1Server(waits: Waits): McpServer {
  const server = new McpServer(
    { name: 'contract-1', version: '1.0.0' },
    {
      capabilities: { logging: {}, resources: { subscribe: true, listChanged: true } },
      instructions: 'Call echo.',
    },
  );
  server.server.setRequestHandler(SetLevelRequestSchema, () => ({}));
  server.server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));

  server.registerTool('echo', { inputSchema: { text: z.string() } }, ({ text }) => said(text));
  server.registerTool('progress', {}, async ({ _meta, sendNotification }) => {
    const progressToken = _meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [1, 2, 3]) {
      await sendNotification({
        method: 'notifications/progress',
        params: { progressToken: progressToken ?? 0, progress, total: 3 },
      });
    }
    return said(progressToken === undefined ? 'without' : 'done');
  });
  server.registerTool('log', {}, async ({ sendNotification }) => {
    await sendNotification({
      method: 'notifications/message',
      params: { level: 'info', data: 'logged' },
    });
    return said('done');
  });
  server.registerTool('ask', {}, async ({ sendRequest }) => {
    const answer = await sendRequest(
      {
        method: 'elicitation/create',
        params: {
          message: 'Which colour?',
          requestedSchema: { type: 'object', properties: { colour: { type: 'string' } } },
        },
      },
      z.looseObject({}),
    );
    return said(JSON.stringify(answer));
  });
  server.registerTool('wait', {}, async ({ signal }) => {
    await waits.wait(signal);
    return said('waited');
  });
  server.registerTool('waits', {}, () => said(JSON.stringify(waits.count())));
  server.registerTool('change', {}, async () => {
    server.sendToolListChanged();
    await server.server.sendResourceUpdated({ uri: 'test://changing' });
    return said('changed');
  });
  return server;
}
